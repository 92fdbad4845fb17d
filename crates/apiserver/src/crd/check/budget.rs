//! What all rules of a schema cost together, in the worst case.

use super::estimate::{SCHEMA_LIMIT, over_budget};
use crate::api::field::{Error, Errors};

/// How many of the most expensive rules are named.
const NAMED: usize = 4;

/// The costs so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    total: u64,
    /// The most expensive first.
    expensive: Vec<(u64, String)>,
}

impl Budget {
    /// Adds the cost of an expression.
    pub(super) fn add(&mut self, path: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        let place = self.expensive.partition_point(|(known, _)| *known >= cost);
        if place < NAMED {
            self.expensive.insert(place, (cost, path.to_owned()));
            self.expensive.truncate(NAMED);
        }
    }

    /// Tells if all rules together cost too much.
    pub(super) fn check(&self, path: &str, errors: &mut Errors) {
        let what = "x-kubernetes-validations estimated rule & messageExpression cost total for entire OpenAPIv3 schema";
        let Some(detail) = over_budget(what, self.total, SCHEMA_LIMIT) else { return };
        let why = "contributed to estimated rule & messageExpression cost total exceeding cost limit for entire \
                   OpenAPIv3 schema";
        errors.extend(self.expensive.iter().map(|(_, path)| Error::forbidden(path.clone(), why)));
        errors.push(Error::forbidden(path.to_owned(), &detail));
    }
}
