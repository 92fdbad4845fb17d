//! `x-kubernetes-validations`: CEL rules about a value and its old value.

use serde_json::Value;

use super::{
    ChildValidators, NodeValidator, cel_values, format_path, value::ListCorrelation, with_field_segment,
    with_key_segment,
};
use crate::{
    api::field::{FieldError, FieldErrorType, FieldErrors},
    cel::{CelValue, EvaluationScope, Expression, MAX_EVALUATION_COST, optional},
    crd::json_path,
    schema::Schema,
};

/// The total cost limit of all rules of an object.
const MAX_RULES_COST: u64 = 50_000_000;

/// kube-apiserver's limit for the result of `messageExpression`.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET_MESSAGE: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

#[derive(Debug)]
pub(super) struct ValidationRule {
    text: String,
    message: String,
    expression: Result<Expression, String>,
    message_expression: Option<Expression>,
    reason: FieldErrorType,
    /// The field of the error, relative to the value.
    field: String,
    uses_old: bool,
    optional_old: bool,
}

impl ValidationRule {
    /// None for an empty rule.
    pub(super) fn compile(rule: &Value, schema: &Schema) -> Option<Self> {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        let source = text("rule");
        if source.trim().is_empty() {
            return None;
        }
        let expression = Expression::compile(source);
        let uses_old = expression.as_ref().is_ok_and(|expression| expression.uses("oldSelf"));
        let message_expression = Some(text("messageExpression")).filter(|message| !message.is_empty());
        Some(Self {
            text: source.trim().to_owned(),
            message: text("message").trim().to_owned(),
            expression,
            message_expression: message_expression.and_then(|message| Expression::compile(message).ok()),
            reason: reason(text("reason")),
            field: json_path::resolve_field(text("fieldPath"), schema, true).map(|(path, _)| path).unwrap_or_default(),
            uses_old,
            optional_old: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
        })
    }

    /// The rule's name in errors.
    fn name(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    fn default_message(&self) -> String {
        if self.message.is_empty() { format!("failed rule: {}", self.text) } else { self.message.clone() }
    }
}

fn reason(name: &str) -> FieldErrorType {
    match name {
        "FieldValueRequired" => FieldErrorType::Required,
        "FieldValueForbidden" => FieldErrorType::Forbidden,
        "FieldValueDuplicate" => FieldErrorType::Duplicate,
        _ => FieldErrorType::Invalid,
    }
}

pub(super) fn check(check: &NodeValidator, base: &str, new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let mut run = RuleEvaluation { path: base.to_owned(), budget: Some(MAX_RULES_COST), errors };
    run.walk(check, new, old, RatchetState { own: old.map(|old| (new, old)), parent: None, root: true });
}

/// The value and its old value, and those of the nearest parent that has an old value. Errors about unchanged
/// values are not reported.
#[derive(Clone, Copy)]
struct RatchetState<'a> {
    own: Option<(&'a Value, &'a Value)>,
    parent: Option<(&'a Value, &'a Value)>,
    root: bool,
}

impl<'a> RatchetState<'a> {
    fn unchanged(&self) -> bool {
        self.own.or(self.parent).is_some_and(|(new, old)| new == old)
    }

    fn part(self, find: impl FnOnce(&'a Value) -> Option<(&'a Value, &'a Value)>) -> Self {
        match self.own {
            None => self,
            Some((_, old)) => Self { own: find(old), parent: self.own, root: false },
        }
    }

    fn field(self, name: &str, value: &'a Value) -> Self {
        if self.root && matches!(name, "apiVersion" | "kind") {
            return Self { own: None, parent: None, root: false };
        }
        self.part(|old| Some((value, old.get(name)?)))
    }
}

struct RuleEvaluation<'e> {
    path: String,
    /// None when it is used up.
    budget: Option<u64>,
    errors: &'e mut FieldErrors,
}

impl RuleEvaluation<'_> {
    fn walk(&mut self, check: &NodeValidator, value: &Value, old: Option<&Value>, ratchet: RatchetState<'_>) {
        if !check.subtree.rules || value.is_null() || self.budget.is_none() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !check.rules.is_empty() {
            self.node(check, value, old, ratchet);
        }
        match (&check.parts, value) {
            (ChildValidators::Fields(known), Value::Object(fields)) => {
                for (name, part) in known {
                    let Some(value) = fields.get(&**name) else { continue };
                    let old = old.and_then(|old| old.get(&**name));
                    let ratchet = ratchet.field(name, value);
                    self.inside(|path, then| with_field_segment(path, name, then), part, value, old, ratchet);
                }
            }
            (ChildValidators::Values(part), Value::Object(fields)) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    let ratchet = ratchet.field(name, value);
                    self.inside(|path, then| with_key_segment(path, name, then), part, value, old, ratchet);
                }
            }
            (ChildValidators::Items(part, list), Value::Array(items)) => {
                let olds = old.and_then(Value::as_array).map(|old| ListCorrelation::new(list, old));
                for (index, item) in items.iter().enumerate() {
                    let old = olds.as_ref().and_then(|olds| olds.find_by_key(item));
                    let place = olds.as_ref().and_then(|olds| olds.find(index, item));
                    let ratchet = ratchet.part(|_| Some((item, place?)));
                    self.inside(|path, then| with_key_segment(path, index, then), part, item, old, ratchet);
                }
            }
            _ => {}
        }
    }

    fn inside(
        &mut self,
        go: impl FnOnce(&mut String, &mut dyn FnMut(&mut String)),
        part: &NodeValidator,
        value: &Value,
        old: Option<&Value>,
        ratchet: RatchetState<'_>,
    ) {
        let mut path = std::mem::take(&mut self.path);
        go(&mut path, &mut |path| {
            std::mem::swap(&mut self.path, path);
            self.walk(part, value, old, ratchet);
            std::mem::swap(&mut self.path, path);
        });
        self.path = path;
    }

    /// Runs the rules of one value.
    fn node(&mut self, check: &NodeValidator, value: &Value, old: Option<&Value>, ratchet: RatchetState<'_>) {
        let convert = |value: &Value| cel_values::cel_value(value, &check.node, check.is_resource);
        let transition = check.rules.iter().any(|rule| rule.uses_old);
        let old_value = old.filter(|_| transition).map(convert);
        let own = convert(value);
        let variables = std::iter::once(("self", own.clone()));
        let plain = EvaluationScope::new(variables.chain(old_value.clone().map(|old| ("oldSelf", old))));
        let maybe = check.rules.iter().any(|rule| rule.optional_old);
        let maybe = maybe.then(|| EvaluationScope::new([("self", own), ("oldSelf", optional(old_value))]));
        for rule in &check.rules {
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let scope = maybe.as_ref().filter(|_| rule.optional_old).unwrap_or(&plain);
            self.rule(check, rule, RuleSubject { value, old, scope, ratchet });
            if self.budget.is_none() {
                return;
            }
        }
    }

    fn rule(&mut self, check: &NodeValidator, rule: &ValidationRule, of: RuleSubject<'_>) {
        let kind = check.types.first().copied().filter(|_| check.types.len() == 1).unwrap_or_default();
        let expression = match &rule.expression {
            Ok(expression) => expression,
            Err(error) => {
                return self.report(
                    format_path(&self.path).to_owned(),
                    kind,
                    &format!("rule compile error: compilation failed: {error}"),
                );
            }
        };
        let path = format_path(&self.path).to_owned();
        if !self.charge_cost(expression, of, kind, rule) {
            return;
        }
        match expression.evaluate(of.scope) {
            Ok(CelValue::Bool(true)) => {}
            Ok(_) => self.report_violation(check, rule, of),
            Err(failure) if failure.is_exhausted() => self.exhaust_budget(kind, rule),
            Err(failure) if failure.is_overload() => {
                let why = "call arguments did not match a supported operator, function or macro signature for rule";
                self.report(path, kind, &format!("'{failure}': {why}: {}", rule.name()));
            }
            Err(failure) => self.report(path, kind, &format!("{failure} evaluating rule: {}", rule.name())),
        }
    }

    /// Charges the cost of an evaluation to the budget. False, with an error, if the budget is not sufficient.
    fn charge_cost(&mut self, expression: &Expression, of: RuleSubject<'_>, kind: &str, rule: &ValidationRule) -> bool {
        let mut variables = vec![("self", of.value)];
        variables.extend(of.old.map(|old| ("oldSelf", old)));
        let cost = expression.cost(&variables);
        if cost > MAX_EVALUATION_COST {
            self.exhaust_budget(kind, rule);
            return false;
        }
        self.budget = self.budget.and_then(|budget| budget.checked_sub(cost));
        if self.budget.is_none() {
            self.report(format_path(&self.path).to_owned(), kind, OUT_OF_BUDGET_MESSAGE);
        }
        self.budget.is_some()
    }

    /// Reports a rule that exceeds the budget. No further rule is run.
    fn exhaust_budget(&mut self, kind: &str, rule: &ValidationRule) {
        let why = "no further validation rules will be run due to call cost exceeds limit for rule";
        let detail = format!("'operation cancelled: actual cost limit exceeded': {why}: {}", rule.name());
        self.report(format_path(&self.path).to_owned(), kind, &detail);
        self.budget = None;
    }

    /// Reports a rule that is false.
    fn report_violation(&mut self, check: &NodeValidator, rule: &ValidationRule, of: RuleSubject<'_>) {
        if !rule.uses_old && of.ratchet.unchanged() {
            return;
        }
        let made = rule.message_expression.as_ref().and_then(|message| self.message(message, of));
        let detail = made.unwrap_or_else(|| rule.default_message());
        let path = match (self.path.as_str(), rule.field.as_str()) {
            (path, "") => format_path(path).to_owned(),
            ("", field) => field.to_owned(),
            (path, field) => format!("{path}.{field}"),
        };
        let whole = matches!(check.types, ["object" | "array"]);
        self.errors.push(match rule.reason {
            FieldErrorType::Forbidden => FieldError::forbidden(path, &detail),
            FieldErrorType::Required => FieldError::required(path, &detail),
            FieldErrorType::Duplicate if whole => FieldError::new(path, FieldErrorType::Duplicate, "Duplicate value"),
            FieldErrorType::Duplicate => FieldError::duplicate(path, of.value),
            _ if whole => FieldError::new(path, FieldErrorType::Invalid, format!("Invalid value: {detail}")),
            _ => FieldError::invalid(path, of.value, &detail),
        });
    }

    /// The result of `messageExpression`, if it is a valid line of text.
    fn message(&mut self, expression: &Expression, of: RuleSubject<'_>) -> Option<String> {
        let mut variables = vec![("self", of.value)];
        variables.extend(of.old.map(|old| ("oldSelf", old)));
        let cost = expression.cost(&variables);
        let left = self.budget?.checked_sub(cost).filter(|_| cost <= MAX_EVALUATION_COST)?;
        self.budget = Some(left);
        let CelValue::String(message) = expression.evaluate(of.scope).ok()? else { return None };
        let message = message.trim();
        let fits = !message.is_empty() && message.len() <= MAX_MESSAGE_BYTES && !message.contains('\n');
        fits.then(|| message.to_owned())
    }

    fn report(&mut self, path: String, kind: &str, detail: &str) {
        self.errors.push(FieldError::invalid(path, &Value::from(kind), detail));
    }
}

/// The values that a rule is about.
#[derive(Clone, Copy)]
struct RuleSubject<'a> {
    value: &'a Value,
    old: Option<&'a Value>,
    scope: &'a EvaluationScope,
    ratchet: RatchetState<'a>,
}
