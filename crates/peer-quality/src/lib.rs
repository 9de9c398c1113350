//! Peer quality: measures, estimates and ranks peers by what they deliver.
#![forbid(unsafe_code)]
