"""Load generators: what sends packets through the device under test and accounts for every one of them."""
