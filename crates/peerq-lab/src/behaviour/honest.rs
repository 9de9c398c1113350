//! Honest: serves as well as its link allows. The control of every scenario.

use super::Conduct;

pub(super) struct Honest;

impl Conduct for Honest {}
