//! Options of create, update and patch.

use super::{QueryParameters, check, check_dry_run};
use crate::api::{StatusError, field, go_format};

/// The longest name of a field manager.
const MAX_MANAGER_BYTES: usize = 128;

/// Options of create, update and patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    pub dry_run: bool,
    /// Empty if absent.
    pub field_manager: String,
    pub field_validation: FieldValidation,
    pub force: Option<bool>,
}

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// A 422 for invalid values.
    pub fn for_create(query: &QueryParameters<'_>) -> Result<Self, StatusError> {
        Self::read(query, "CreateOptions", Vec::new())
    }

    /// Options of an update.
    ///
    /// # Errors
    /// A 422 for invalid values.
    pub fn for_update(query: &QueryParameters<'_>) -> Result<Self, StatusError> {
        Self::read(query, "UpdateOptions", Vec::new())
    }

    /// Options of a patch; an apply requires a manager, and only it may force.
    ///
    /// # Errors
    /// A 422 for invalid values.
    pub fn for_patch(query: &QueryParameters<'_>, apply: bool) -> Result<Self, StatusError> {
        let force = query.flag("force");
        let mut errors = Vec::new();
        if apply && query.get("fieldManager").unwrap_or_default().is_empty() {
            errors.push(field::FieldError::required("fieldManager", "is required for apply patch"));
        }
        if !apply && force.is_some() {
            errors.push(field::FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Ok(Self { force, ..Self::read(query, "PatchOptions", errors)? })
    }

    fn read(query: &QueryParameters<'_>, kind: &str, mut errors: field::FieldErrors) -> Result<Self, StatusError> {
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
                errors.push(field::FieldError::not_supported("fieldValidation", &other.into(), known));
                FieldValidation::Warn
            }
        };
        check(kind, &errors)?;
        Ok(Self { dry_run: !dry_run.is_empty(), field_manager, field_validation, force: None })
    }
}

fn check_manager(manager: &str, errors: &mut field::FieldErrors) {
    if manager.len() > MAX_MANAGER_BYTES {
        errors.push(field::FieldError::too_long("fieldManager", MAX_MANAGER_BYTES));
    }
    // The length is limited only by that of the request, and each error shows the whole name.
    for (at, c) in manager.char_indices().filter(|(_, c)| !go_format::is_print(*c)).take(MAX_MANAGER_BYTES) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(field::FieldError::invalid("fieldManager", &manager.into(), &why));
    }
}
