"""RUDDER: an LSTM predicts the return, and differences of its predictions are the rewards."""
