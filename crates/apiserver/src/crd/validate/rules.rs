//! `x-kubernetes-validations`: rules in CEL over a value and what it was before.

use serde_json::Value;

use super::{Check, Parts, convert, shown, value::Correlation, with_child, with_key};
use crate::{
    api::field::{Error, Errors, Kind},
    cel::{COST_PER_CALL, CelValue, Expression, Scope, optional},
    crd::path,
    schema::Schema,
};

/// What all rules of an object may cost together.
const BUDGET: u64 = 50_000_000;

/// kube-apiserver's limit for what `messageExpression` gives.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    text: String,
    message: String,
    expression: Result<Expression, String>,
    message_expression: Option<Expression>,
    reason: Kind,
    /// Where errors are reported, relative to the value.
    field: String,
    uses_old: bool,
    optional_old: bool,
}

impl Rule {
    /// None for a rule that says nothing.
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
            field: path::resolve(text("fieldPath"), schema, true).map(|(path, _)| path).unwrap_or_default(),
            uses_old,
            optional_old: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
        })
    }

    /// How errors about the rule name it.
    fn name(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    fn default_message(&self) -> String {
        if self.message.is_empty() { format!("failed rule: {}", self.text) } else { self.message.clone() }
    }
}

fn reason(name: &str) -> Kind {
    match name {
        "FieldValueRequired" => Kind::Required,
        "FieldValueForbidden" => Kind::Forbidden,
        "FieldValueDuplicate" => Kind::Duplicate,
        _ => Kind::Invalid,
    }
}

/// Runs all rules of a value.
pub(super) fn check(check: &Check, base: &str, new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let mut run = Run { path: base.to_owned(), budget: Some(BUDGET), errors };
    run.walk(check, new, old, Ratchet { own: old.map(|old| (new, old)), parent: None, root: true });
}

/// The value and what it was, and the same of the nearest part around it that had a value before. Errors of what did not
/// change are not told.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    own: Option<(&'a Value, &'a Value)>,
    parent: Option<(&'a Value, &'a Value)>,
    root: bool,
}

impl<'a> Ratchet<'a> {
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

struct Run<'e> {
    path: String,
    /// None when it is used up.
    budget: Option<u64>,
    errors: &'e mut Errors,
}

impl Run<'_> {
    fn walk(&mut self, check: &Check, value: &Value, old: Option<&Value>, ratchet: Ratchet<'_>) {
        if !check.within.rules || value.is_null() || self.budget.is_none() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !check.rules.is_empty() {
            self.node(check, value, old, ratchet);
        }
        match (&check.parts, value) {
            (Parts::Fields(known), Value::Object(fields)) => {
                for (name, part) in known {
                    let Some(value) = fields.get(&**name) else { continue };
                    let (old, ratchet) = (old.and_then(|old| old.get(&**name)), ratchet.field(name, value));
                    self.inside(|path, then| with_child(path, name, then), part, value, old, ratchet);
                }
            }
            (Parts::Values(part), Value::Object(fields)) => {
                for (name, value) in fields {
                    let (old, ratchet) = (old.and_then(|old| old.get(name)), ratchet.field(name, value));
                    self.inside(|path, then| with_key(path, name, then), part, value, old, ratchet);
                }
            }
            (Parts::Items(part, list), Value::Array(items)) => {
                let olds = old.and_then(Value::as_array).map(|old| Correlation::new(list, old));
                for (index, item) in items.iter().enumerate() {
                    let old = olds.as_ref().and_then(|olds| olds.find_by_key(item));
                    let place = olds.as_ref().and_then(|olds| olds.find(index, item));
                    let ratchet = ratchet.part(|_| Some((item, place?)));
                    self.inside(|path, then| with_key(path, index, then), part, item, old, ratchet);
                }
            }
            _ => {}
        }
    }

    fn inside(
        &mut self,
        go: impl FnOnce(&mut String, &mut dyn FnMut(&mut String)),
        part: &Check,
        value: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
    ) {
        let mut path = std::mem::take(&mut self.path);
        go(&mut path, &mut |path| {
            std::mem::swap(&mut self.path, path);
            self.walk(part, value, old, ratchet);
            std::mem::swap(&mut self.path, path);
        });
        self.path = path;
    }

    /// The rules of one value.
    fn node(&mut self, check: &Check, value: &Value, old: Option<&Value>, ratchet: Ratchet<'_>) {
        let convert = |value: &Value| convert::value(value, &check.node, check.is_resource);
        let transition = check.rules.iter().any(|rule| rule.uses_old);
        let old_value = old.filter(|_| transition).map(convert);
        let own = convert(value);
        let variables = std::iter::once(("self", own.clone()));
        let plain = Scope::new(variables.chain(old_value.clone().map(|old| ("oldSelf", old))));
        let maybe = check.rules.iter().any(|rule| rule.optional_old);
        let maybe = maybe.then(|| Scope::new([("self", own), ("oldSelf", optional(old_value))]));
        for rule in &check.rules {
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let scope = maybe.as_ref().filter(|_| rule.optional_old).unwrap_or(&plain);
            self.rule(check, rule, Subject { value, old, scope, ratchet });
            if self.budget.is_none() {
                return;
            }
        }
    }

    fn rule(&mut self, check: &Check, rule: &Rule, of: Subject<'_>) {
        let kind = check.types.first().copied().filter(|_| check.types.len() == 1).unwrap_or_default();
        let expression = match &rule.expression {
            Ok(expression) => expression,
            Err(error) => {
                return self.report(
                    shown(&self.path).to_owned(),
                    kind,
                    &format!("rule compile error: compilation failed: {error}"),
                );
            }
        };
        let path = shown(&self.path).to_owned();
        if !self.pay(expression, of, kind, rule) {
            return;
        }
        match expression.evaluate(of.scope) {
            Ok(CelValue::Bool(true)) => {}
            Ok(_) => self.broken(check, rule, of),
            Err(failure) if failure.is_exhausted() => self.stop(kind, rule),
            Err(failure) if failure.is_overload() => {
                let why = "call arguments did not match a supported operator, function or macro signature for rule";
                self.report(path, kind, &format!("'{failure}': {why}: {}", rule.name()));
            }
            Err(failure) => self.report(path, kind, &format!("{failure} evaluating rule: {}", rule.name())),
        }
    }

    /// Takes the cost of an evaluation from the budget. False when there is not enough, which is told.
    fn pay(&mut self, expression: &Expression, of: Subject<'_>, kind: &str, rule: &Rule) -> bool {
        let mut variables = vec![("self", of.value)];
        variables.extend(of.old.map(|old| ("oldSelf", old)));
        let cost = expression.cost(&variables);
        if cost > COST_PER_CALL {
            self.stop(kind, rule);
            return false;
        }
        self.budget = self.budget.and_then(|budget| budget.checked_sub(cost));
        if self.budget.is_none() {
            self.report(shown(&self.path).to_owned(), kind, OUT_OF_BUDGET);
        }
        self.budget.is_some()
    }

    /// Reports a rule that costs too much. No further rule is run.
    fn stop(&mut self, kind: &str, rule: &Rule) {
        let why = "no further validation rules will be run due to call cost exceeds limit for rule";
        let detail = format!("'operation cancelled: actual cost limit exceeded': {why}: {}", rule.name());
        self.report(shown(&self.path).to_owned(), kind, &detail);
        self.budget = None;
    }

    /// A rule does not hold.
    fn broken(&mut self, check: &Check, rule: &Rule, of: Subject<'_>) {
        if !rule.uses_old && of.ratchet.unchanged() {
            return;
        }
        let made = rule.message_expression.as_ref().and_then(|message| self.message(message, of));
        let detail = made.unwrap_or_else(|| rule.default_message());
        let path = match (self.path.as_str(), rule.field.as_str()) {
            (path, "") => shown(path).to_owned(),
            ("", field) => field.to_owned(),
            (path, field) => format!("{path}.{field}"),
        };
        let whole = matches!(check.types, ["object" | "array"]);
        self.errors.push(match rule.reason {
            Kind::Forbidden => Error::forbidden(path, &detail),
            Kind::Required => Error::required(path, &detail),
            Kind::Duplicate if whole => Error::of(path, Kind::Duplicate, "Duplicate value"),
            Kind::Duplicate => Error::duplicate(path, of.value),
            _ if whole => Error::of(path, Kind::Invalid, format!("Invalid value: {detail}")),
            _ => Error::invalid(path, of.value, &detail),
        });
    }

    /// What `messageExpression` says, if it says something that fits on a line.
    fn message(&mut self, expression: &Expression, of: Subject<'_>) -> Option<String> {
        let mut variables = vec![("self", of.value)];
        variables.extend(of.old.map(|old| ("oldSelf", old)));
        let cost = expression.cost(&variables);
        let left = self.budget?.checked_sub(cost).filter(|_| cost <= COST_PER_CALL)?;
        self.budget = Some(left);
        let CelValue::String(message) = expression.evaluate(of.scope).ok()? else { return None };
        let message = message.trim();
        let fits = !message.is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n');
        fits.then(|| message.to_owned())
    }

    fn report(&mut self, path: String, kind: &str, detail: &str) {
        self.errors.push(Error::invalid(path, &Value::from(kind), detail));
    }
}

/// What a rule is about.
#[derive(Clone, Copy)]
struct Subject<'a> {
    value: &'a Value,
    old: Option<&'a Value>,
    scope: &'a Scope,
    ratchet: Ratchet<'a>,
}
