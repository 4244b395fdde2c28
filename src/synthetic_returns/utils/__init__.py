"""Small things that every part uses: checks, averages, files."""
