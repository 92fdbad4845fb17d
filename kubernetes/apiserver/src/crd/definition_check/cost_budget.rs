//! The total worst-case cost of all rules of a schema.

use super::cost_estimate::{MAX_SCHEMA_COST, over_budget};
use crate::api::field::{FieldError, FieldErrors};

/// How many of the most expensive rules are reported.
const MAX_NAMED_RULES: usize = 4;

#[derive(Debug, Default)]
pub(super) struct RuleCostTotal {
    total: u64,
    expensive: Vec<(u64, String)>,
}

impl RuleCostTotal {
    pub(super) fn add(&mut self, path: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        let place = self.expensive.partition_point(|(known, _)| *known >= cost);
        if place < MAX_NAMED_RULES {
            self.expensive.insert(place, (cost, path.to_owned()));
            self.expensive.truncate(MAX_NAMED_RULES);
        }
    }

    /// Reports an excessive total cost.
    pub(super) fn check(&self, path: &str, errors: &mut FieldErrors) {
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let Some(detail) = over_budget(what, self.total, MAX_SCHEMA_COST) else { return };
        let why = "contributed to estimated rule cost total exceeding cost limit for entire \
                   OpenAPIv3 schema";
        errors.extend(self.expensive.iter().map(|(_, path)| FieldError::forbidden(path.clone(), why)));
        errors.push(FieldError::forbidden(path.to_owned(), &detail));
    }
}
