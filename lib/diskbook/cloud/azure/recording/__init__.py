"""`--record` and `diskbook record`: each exchange with Azure, kept with pseudonyms for what is private."""
