//! Validates the expressions of a policy by compiling them.

use std::sync::Arc;

use super::compiles;
use crate::{
    api::field::{FieldError, FieldErrors},
    cel::check::{self, CelType, TypeEnvironment, VariableDeclarations},
    kinds::{field_value::FieldValue, names},
};

const VARIABLES_TYPE: &str = "kubernetes.variables";
/// The longest expression of an audit annotation.
const MAX_ANNOTATION_EXPRESSION_BYTES: usize = 5 * 1024;
/// The limit of audit annotations of a policy.
const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// Reserved words of CEL.
const RESERVED_WORDS: [&str; 21] = [
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

/// Validates a policy's variables, validations and audit annotations.
pub(super) fn check(spec: &FieldValue<'_>, policy: &str, errors: &mut FieldErrors) {
    let has_params = spec.get("paramKind").is_set();
    let mut with_authorizer =
        check::admission_environment(VariableDeclarations { params: has_params, authorizer: true });
    let mut without = check::admission_environment(VariableDeclarations { params: has_params, authorizer: false });
    variables(&spec.get("variables"), [&mut with_authorizer, &mut without], errors);
    let validations = spec.get("validations");
    let annotations = spec.get("auditAnnotations");
    if validations.is_empty() && annotations.is_empty() {
        for list in [&validations, &annotations] {
            list.report_required(errors, "validations or auditAnnotations must contain at least one item");
        }
    }
    for validation in validations.items() {
        self::validation(&validation, &with_authorizer, &without, errors);
    }
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        annotations
            .report_invalid(errors, &format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"));
    }
    let mut seen: Vec<String> = Vec::new();
    for annotation in annotations.items() {
        self::annotation(&annotation, policy, &with_authorizer, errors);
        let key = annotation.get("key");
        if seen.iter().any(|known| known == key.str()) {
            key.report_duplicate(errors);
        }
        seen.push(key.str().to_owned());
    }
}

/// Each variable can refer to those before it.
fn variables(list: &FieldValue<'_>, mut environments: [&mut TypeEnvironment; 2], errors: &mut FieldErrors) {
    if list.is_empty() {
        return;
    }
    for environment in &mut environments {
        environment.variables.push(("variables".to_owned(), CelType::object(VARIABLES_TYPE)));
        environment.structs.insert(Arc::from(VARIABLES_TYPE), Vec::new());
    }
    for variable in list.items() {
        let name = variable.get("name");
        let expression = variable.get("expression");
        if name.str().trim().is_empty() {
            name.report_required(errors, "name is not specified");
        } else if !is_identifier(name.str()) {
            name.report_invalid(errors, "must be a valid CEL identifier");
        }
        if expression.str().trim().is_empty() {
            expression.report_required(errors, "expression is not specified");
            continue;
        }
        let [first, ..] = &environments;
        let found = check::check(expression.str(), first);
        if let Err(wrong) = &found {
            expression.report_invalid(errors, &format!("compilation failed: {wrong}"));
        }
        let found = found.map_or(CelType::Dyn, stored);
        for environment in &mut environments {
            if let Some(fields) = environment.structs.get_mut(VARIABLES_TYPE) {
                fields.retain(|(known, _)| known != name.str());
                fields.push((name.str().to_owned(), found.clone()));
            }
        }
    }
}

/// The type of a reference to a variable: `dyn` unless it is a plain value.
fn stored(of: CelType) -> CelType {
    match of {
        CelType::List(of) => CelType::list(stored((*of).clone())),
        CelType::Map(key, value) => CelType::map(stored((*key).clone()), stored((*value).clone())),
        CelType::Struct(_)
        | CelType::Optional(_)
        | CelType::Opaque(_)
        | CelType::Meta(_)
        | CelType::Param(_)
        | CelType::Error => CelType::Dyn,
        other => other,
    }
}

fn validation(
    of: &FieldValue<'_>,
    environment: &TypeEnvironment,
    for_messages: &TypeEnvironment,
    errors: &mut FieldErrors,
) {
    let expression = of.get("expression");
    if expression.str().trim().is_empty() {
        expression.report_required(errors, "expression is not specified");
    } else {
        compiles(expression.path(), expression.str(), environment, &[CelType::Bool], errors);
    }
    let message = of.get("messageExpression");
    if !message.str().trim().is_empty() {
        compiles(message.path(), message.str(), for_messages, &[CelType::String], errors);
    } else if !message.str().is_empty() {
        message.report_invalid(errors, "must be non-empty if specified");
    }
    let message = of.get("message");
    let trimmed = message.str().trim();
    if trimmed.is_empty() && !message.str().is_empty() {
        message.report_invalid(errors, "must be non-empty if specified");
    } else if trimmed.contains(['\n', '\r']) {
        message.report_invalid(errors, "must not contain line breaks");
    }
    let reason = of.get("reason");
    if reason.is_set() {
        reason.require_one_of(errors, &["Forbidden", "Invalid", "RequestEntityTooLarge"]);
    }
}

fn annotation(of: &FieldValue<'_>, policy: &str, environment: &TypeEnvironment, errors: &mut FieldErrors) {
    let key = of.get("key");
    if policy.is_empty() {
        key.report_invalid(errors, "requires metadata.name be non-empty");
    } else {
        let name = format!("{policy}/{}", key.str());
        errors.extend(
            names::qualified(&name).iter().map(|why| FieldError::invalid(key.path(), &name.as_str().into(), why)),
        );
    }
    let expression = of.get("valueExpression");
    match expression.str().trim() {
        "" => expression.report_required(errors, "valueExpression is not specified"),
        long if long.len() > MAX_ANNOTATION_EXPRESSION_BYTES => {
            expression
                .report_required(errors, &format!("must not exceed {MAX_ANNOTATION_EXPRESSION_BYTES} bytes in length"));
        }
        source => compiles(expression.path(), source, environment, &[CelType::String, CelType::Null], errors),
    }
}

fn is_identifier(name: &str) -> bool {
    let is_start = |char: char| char.is_ascii_alphabetic() || char == '_';
    name.starts_with(is_start)
        && name.chars().all(|char| is_start(char) || char.is_ascii_digit())
        && !RESERVED_WORDS.contains(&name)
}
