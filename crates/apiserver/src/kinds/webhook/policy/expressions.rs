//! The expressions of a policy: they are compiled when it is written.

use std::sync::Arc;

use super::compiles;
use crate::{
    api::field::{Error, Errors},
    cel::check::{self, Declarations, Environment, Type},
    kinds::{at::At, names},
};

/// The type of `variables`.
const VARIABLES: &str = "kubernetes.variables";
/// The longest expression of an audit annotation.
const ANNOTATION_MAX: usize = 5 * 1024;
/// How many audit annotations a policy may have.
const ANNOTATIONS_MAX: usize = 20;
/// Names that are words of the language.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// All that is wrong with a policy's variables, validations and audit annotations.
pub(super) fn check(spec: &At<'_>, policy: &str, errors: &mut Errors) {
    let has_params = spec.get("paramKind").is_set();
    let mut with_authorizer = check::admission(Declarations { params: has_params, authorizer: true });
    let mut without = check::admission(Declarations { params: has_params, authorizer: false });
    variables(&spec.get("variables"), [&mut with_authorizer, &mut without], errors);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for list in [&validations, &annotations] {
            list.required(errors, "validations or auditAnnotations must contain at least one item");
        }
    }
    for validation in validations.items() {
        self::validation(&validation, &with_authorizer, &without, errors);
    }
    if annotations.len() > ANNOTATIONS_MAX {
        annotations.invalid(errors, &format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations"));
    }
    let mut seen: Vec<String> = Vec::new();
    for annotation in annotations.items() {
        self::annotation(&annotation, policy, &with_authorizer, errors);
        let key = annotation.get("key");
        if seen.iter().any(|known| known == key.str()) {
            key.duplicate(errors);
        }
        seen.push(key.str().to_owned());
    }
}

/// Each variable can name those before it.
fn variables(list: &At<'_>, mut environments: [&mut Environment; 2], errors: &mut Errors) {
    if list.is_empty() {
        return;
    }
    for environment in &mut environments {
        environment.variables.push(("variables".to_owned(), Type::object(VARIABLES)));
        environment.structs.insert(Arc::from(VARIABLES), Vec::new());
    }
    for variable in list.items() {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.str().trim().is_empty() {
            name.required(errors, "name is not specified");
        } else if !is_identifier(name.str()) {
            name.invalid(errors, "must be a valid CEL identifier");
        }
        if expression.str().trim().is_empty() {
            expression.required(errors, "expression is not specified");
            continue;
        }
        let [first, ..] = &environments;
        let found = check::check(expression.str(), first);
        if let Err(wrong) = &found {
            expression.invalid(errors, &format!("compilation failed: {wrong}"));
        }
        let found = found.map_or(Type::Dyn, stored);
        for environment in &mut environments {
            if let Some(fields) = environment.structs.get_mut(VARIABLES) {
                fields.retain(|(known, _)| known != name.str());
                fields.push((name.str().to_owned(), found.clone()));
            }
        }
    }
}

/// The type of a variable where it is named: what is no plain value is `dyn` there.
fn stored(of: Type) -> Type {
    match of {
        Type::List(of) => Type::list(stored((*of).clone())),
        Type::Map(key, value) => Type::map(stored((*key).clone()), stored((*value).clone())),
        Type::Struct(_) | Type::Optional(_) | Type::Opaque(_) | Type::Meta(_) | Type::Param(_) | Type::Error => {
            Type::Dyn
        }
        other => other,
    }
}

fn validation(of: &At<'_>, environment: &Environment, for_messages: &Environment, errors: &mut Errors) {
    let expression = of.get("expression");
    if expression.str().trim().is_empty() {
        expression.required(errors, "expression is not specified");
    } else {
        compiles(expression.path(), expression.str(), environment, &[Type::Bool], errors);
    }
    let message = of.get("messageExpression");
    if !message.str().trim().is_empty() {
        compiles(message.path(), message.str(), for_messages, &[Type::String], errors);
    } else if !message.str().is_empty() {
        message.invalid(errors, "must be non-empty if specified");
    }
    let message = of.get("message");
    let trimmed = message.str().trim();
    if trimmed.is_empty() && !message.str().is_empty() {
        message.invalid(errors, "must be non-empty if specified");
    } else if trimmed.contains(['\n', '\r']) {
        message.invalid(errors, "must not contain line breaks");
    }
    let reason = of.get("reason");
    if reason.is_set() {
        reason.one_of(errors, &["Forbidden", "Invalid", "RequestEntityTooLarge"]);
    }
}

fn annotation(of: &At<'_>, policy: &str, environment: &Environment, errors: &mut Errors) {
    let key = of.get("key");
    if policy.is_empty() {
        key.invalid(errors, "requires metadata.name be non-empty");
    } else {
        let name = format!("{policy}/{}", key.str());
        errors.extend(names::qualified(&name).iter().map(|why| Error::invalid(key.path(), &name.as_str().into(), why)));
    }
    let expression = of.get("valueExpression");
    match expression.str().trim() {
        "" => expression.required(errors, "valueExpression is not specified"),
        long if long.len() > ANNOTATION_MAX => {
            expression.required(errors, &format!("must not exceed {ANNOTATION_MAX} bytes in length"));
        }
        source => compiles(expression.path(), source, environment, &[Type::String, Type::Null], errors),
    }
}

fn is_identifier(name: &str) -> bool {
    let is_start = |char: char| char.is_ascii_alphabetic() || char == '_';
    name.starts_with(is_start)
        && name.chars().all(|char| is_start(char) || char.is_ascii_digit())
        && !RESERVED.contains(&name)
}
