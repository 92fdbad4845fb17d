//! Options of create, update and patch.

use super::{Query, check, check_dry_run};
use crate::api::{Status, field, go};

/// Names of managers may be this long.
const MANAGER_MAX: usize = 128;

/// Options of create, update and patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct WriteOptions {
    pub dry_run: bool,
    /// Empty if none was given.
    pub field_manager: String,
    pub field_validation: FieldValidation,
    /// Of apply only.
    pub force: Option<bool>,
}

/// What becomes of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl WriteOptions {
    /// Options of a create.
    ///
    /// # Errors
    /// A 422 for what breaks rules.
    pub fn create(query: &Query<'_>) -> Result<Self, Status> {
        Self::read(query, "CreateOptions", Vec::new())
    }

    /// Options of an update.
    ///
    /// # Errors
    /// A 422 for what breaks rules.
    pub fn update(query: &Query<'_>) -> Result<Self, Status> {
        Self::read(query, "UpdateOptions", Vec::new())
    }

    /// Options of a patch; an apply needs a manager, and only it may force.
    ///
    /// # Errors
    /// A 422 for what breaks rules.
    pub fn patch(query: &Query<'_>, apply: bool) -> Result<Self, Status> {
        let force = query.flag("force");
        let mut errors = Vec::new();
        if apply && query.get("fieldManager").unwrap_or_default().is_empty() {
            errors.push(field::Error::required("fieldManager", "is required for apply patch"));
        }
        if !apply && force.is_some() {
            errors.push(field::Error::forbidden("force", "may not be specified for non-apply patch"));
        }
        Ok(Self { force, ..Self::read(query, "PatchOptions", errors)? })
    }

    fn read(query: &Query<'_>, kind: &str, mut errors: field::Errors) -> Result<Self, Status> {
        let field_manager = query.text("fieldManager");
        check_manager(&field_manager, &mut errors);
        let dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        check_dry_run(&dry_run, &mut errors);
        let field_validation = match query.get("fieldValidation").unwrap_or_default() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let known = &["", "Ignore", "Strict", "Warn"];
                errors.push(field::Error::not_supported("fieldValidation", &other.into(), known));
                FieldValidation::Warn
            }
        };
        check(kind, &errors)?;
        Ok(Self { dry_run: !dry_run.is_empty(), field_manager, field_validation, force: None })
    }
}

fn check_manager(manager: &str, errors: &mut field::Errors) {
    if manager.len() > MANAGER_MAX {
        errors.push(field::Error::too_long("fieldManager", MANAGER_MAX));
    }
    // The length is bounded only by the request's, and each error shows the whole name.
    for (at, c) in manager.char_indices().filter(|(_, c)| !go::is_print(*c)).take(MANAGER_MAX) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(field::Error::invalid("fieldManager", &manager.into(), &why));
    }
}
