//! Black-box tests of the built binary, by area.
