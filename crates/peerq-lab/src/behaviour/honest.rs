//! Honest: serves as well as its link allows. The control of every scenario.

use super::Conduct;

#[derive(Clone)]
pub(super) struct Honest;

impl Conduct for Honest {}
