//! Validates CEL rules: whether they compile, and their cost.
//!
//! Rules are checked against types that are derived from the schema.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value};

use super::{
    cost_budget::RuleCostTotal,
    cost_estimate::{estimate, rule_over_budget},
    declared_types::DeclaredType,
    version_fields::format_rule,
};
use crate::{
    api::field::{FieldError, FieldErrorType, FieldErrors},
    cel::{
        Expression,
        check::{self, CelType, TypeEnvironment},
    },
    crd::structural::{array_field, bool_field, text},
};

/// A node of a schema that may have rules.
pub(super) struct RuleContext<'s> {
    pub(super) schema: &'s Map<String, Value>,
    pub(super) path: &'s str,
    /// Whether it is the root of a resource.
    pub(super) is_root: bool,
    /// The part of the schema around it that cannot be correlated with an old object.
    pub(super) uncorrelated: Option<&'s str>,
    /// The largest number of such values in an object; none without a limit.
    pub(super) cardinality: Option<u64>,
}

pub(super) fn check(of: &RuleContext<'_>, budget: &mut RuleCostTotal, errors: &mut FieldErrors) {
    let rules = array_field(of.schema, "x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let is_resource = of.is_root || bool_field(of.schema, "x-kubernetes-embedded-resource");
    let declared = DeclaredType::Schema(of.schema, is_resource);
    let mut structs = HashMap::new();
    let own = declared.cel_type(&self_type_name(), &mut structs).unwrap_or(CelType::Dyn);
    for (index, rule) in rules.iter().enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        let is_optional = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
        let old = if is_optional { CelType::optional(own.clone()) } else { own.clone() };
        let environment = TypeEnvironment {
            variables: vec![("self".to_owned(), own.clone()), ("oldSelf".to_owned(), old)],
            structs: std::mem::take(&mut structs),
        };
        let path = format!("{}.x-kubernetes-validations[{index}]", of.path);
        self::rule(rule, declared, &environment, &path, of, budget, errors);
        structs = environment.structs;
    }
}

/// A random name, so that no rule can rely on it.
fn self_type_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    format!("selfType{now}")
}

fn rule(
    rule: &Map<String, Value>,
    declared: DeclaredType<'_>,
    environment: &TypeEnvironment,
    path: &str,
    of: &RuleContext<'_>,
    budget: &mut RuleCostTotal,
    errors: &mut FieldErrors,
) {
    let invalid = |field: &str, detail: &str| {
        FieldError::new(
            format!("{path}.{field}"),
            FieldErrorType::Invalid,
            format!("Invalid value: {}: {detail}", format_rule(rule)),
        )
    };
    let optional = rule.get("optionalOldSelf").filter(|optional| !optional.is_null());
    let is_optional = optional == Some(&Value::Bool(true));
    let variables = || vec![("self", Some(declared)), ("oldSelf", (!is_optional).then_some(declared))];
    let source = text(rule, "rule");
    let compiled = check::check(source, environment).and_then(|found| Ok((Expression::compile(source)?, found)));
    let uses_old = match compiled {
        Err(why) => return errors.push(invalid("rule", &format!("compilation failed: {why}"))),
        Ok((_, found)) if found != CelType::Bool => {
            return errors.push(invalid("rule", "cel expression must evaluate to a bool"));
        }
        Ok((expression, _)) => {
            let (cost, _) = estimate(expression.tree(), variables());
            let cost = cost.saturating_mul(of.cardinality.unwrap_or_else(|| declared.max_cardinality()));
            let path = format!("{path}.rule");
            if let Some(detail) = rule_over_budget("estimated rule cost", cost) {
                errors.push(FieldError::forbidden(path.clone(), &detail));
            }
            budget.add(&path, cost);
            expression.uses("oldSelf")
        }
    };
    let message = text(rule, "messageExpression");
    if !message.is_empty() {
        let compiled = check::check(message, environment).and_then(|found| Ok((Expression::compile(message)?, found)));
        match compiled {
            Err(why) => {
                errors.push(invalid("messageExpression", &format!("messageExpression compilation failed: {why}")))
            }
            Ok((_, found)) if found != CelType::String => {
                errors.push(invalid("messageExpression", "messageExpression must evaluate to a string"));
            }
            Ok((expression, _)) => {
                let (cost, _) = estimate(expression.tree(), variables());
                let path = format!("{path}.messageExpression");
                if let Some(detail) = rule_over_budget("estimated messageExpression cost", cost) {
                    errors.push(FieldError::forbidden(path.clone(), &detail));
                }
                budget.add(&path, cost);
            }
        }
    }
    if let (true, Some(within)) = (uses_old, of.uncorrelated) {
        let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
        errors.push(FieldError::invalid(format!("{path}.rule"), &text(rule, "rule").into(), &detail));
    }
    if let (false, Some(optional)) = (uses_old, optional) {
        let detail = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(format!("{path}.optionalOldSelf"), optional, detail));
    }
}
