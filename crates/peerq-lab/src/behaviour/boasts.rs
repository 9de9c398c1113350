//! Boasts of a capacity that it does not have (scenario A19): no policy here is told claims, so what is left of it is an ordinary peer with a slow link.

use super::Conduct;

#[derive(Clone)]
pub(super) struct Boasts;

impl Conduct for Boasts {}
