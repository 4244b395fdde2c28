"""Looking at episodes: recordings, pictures, and the page that plays them."""
