//! The manual: why the engine does what it does. Documentation only.
//!
//! - [`feeding`]: which facts to hand over, when, and what happens without them
//! - [`defaults`]: each default that shapes a decision, and what speaks for it
//! - [`attacks`]: how a peer may try to look better than it is, and which signal answers it today
//!
//! The numbers themselves stand beside the code that uses them, each with what goes wrong when it is higher or lower.

pub mod attacks;
pub mod defaults;
pub mod feeding;
