"""From a configuration to a finished run directory."""
