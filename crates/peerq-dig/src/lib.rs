//! Host for the DIG stack.
#![forbid(unsafe_code)]

pub mod content;
