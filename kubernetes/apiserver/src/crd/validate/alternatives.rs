//! `anyOf`, `oneOf`, `allOf` and `not`.
//!
//! `anyOf` and `oneOf` report the errors of the closest alternative, which is the one with most passed checks.

use serde_json::Value;

use super::{
    NodeValidator,
    value::{PassedChecks, ValidationWalk},
};
use crate::api::field;

impl NodeValidator {
    /// Checks all alternatives of a value.
    pub(super) fn check_alternatives(
        &self,
        walk: &mut ValidationWalk,
        value: &Value,
        old: Option<&Value>,
    ) -> PassedChecks {
        let mut passed = 0;
        if !self.any_of.is_empty() {
            passed += any_of(&self.any_of, walk, value, old);
        }
        if !self.one_of.is_empty() {
            passed += one_of(&self.one_of, walk, value, old);
        }
        if !self.all_of.is_empty() {
            passed += all_of(&self.all_of, walk, value, old);
        }
        if self.not.as_ref().is_some_and(|not| try_out(not, walk, value, old).1.is_empty()) {
            walk.push_general_error("must not validate the schema (not)");
        }
        passed
    }
}

/// The errors of a single alternative.
fn try_out(
    check: &NodeValidator,
    walk: &mut ValidationWalk,
    value: &Value,
    old: Option<&Value>,
) -> (PassedChecks, field::FieldErrors) {
    let before = walk.errors.len();
    let passed = check.examine(walk, value, old);
    (passed, walk.errors.split_off(before))
}

fn any_of(checks: &[NodeValidator], walk: &mut ValidationWalk, value: &Value, old: Option<&Value>) -> PassedChecks {
    let mut best: Option<(PassedChecks, field::FieldErrors)> = None;
    for check in checks {
        let (passed, errors) = try_out(check, walk, value, old);
        if errors.is_empty() {
            return passed;
        }
        if best.as_ref().is_none_or(|(most, _)| passed > *most) {
            best = Some((passed, errors));
        }
    }
    walk.push_general_error("must validate at least one schema (anyOf)");
    let (passed, errors) = best.unwrap_or_default();
    walk.errors.extend(errors);
    passed
}

fn one_of(checks: &[NodeValidator], walk: &mut ValidationWalk, value: &Value, old: Option<&Value>) -> PassedChecks {
    let mut best: Option<(PassedChecks, field::FieldErrors)> = None;
    let mut valid: Vec<PassedChecks> = Vec::new();
    for check in checks {
        let (passed, errors) = try_out(check, walk, value, old);
        if errors.is_empty() {
            valid.push(passed);
        } else if best.as_ref().is_none_or(|(most, _)| passed > *most) {
            best = Some((passed, errors));
        }
    }
    match valid.as_slice() {
        [passed] => *passed,
        [] => {
            walk.push_general_error("must validate one and only one schema (oneOf). Found none valid");
            let (passed, errors) = best.unwrap_or_default();
            walk.errors.extend(errors);
            passed
        }
        several => {
            let count = several.len();
            walk.push_general_error(&format!(
                "must validate one and only one schema (oneOf). Found {count} valid alternatives"
            ));
            0
        }
    }
}

fn all_of(checks: &[NodeValidator], walk: &mut ValidationWalk, value: &Value, old: Option<&Value>) -> PassedChecks {
    let mut passed = 0;
    let mut valid = 0;
    for check in checks {
        let before = walk.errors.len();
        passed += check.examine(walk, value, old);
        valid += usize::from(walk.errors.len() == before);
    }
    if valid != checks.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        walk.push_general_error(&format!("must validate all the schemas (allOf){none}"));
    }
    passed
}
