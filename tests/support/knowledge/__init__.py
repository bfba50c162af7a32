"""What tests of statements share: an oracle written from the specification, and random histories."""
