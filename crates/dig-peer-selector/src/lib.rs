//! A peer selector for the DIG network.
#![forbid(unsafe_code)]
