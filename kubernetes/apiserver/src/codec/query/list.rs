//! Options of get, list and watch.

use super::{QueryParameters, check};
use crate::{
    api::{StatusError, field, go_format},
    codec::selector::{FieldSelector, LabelSelector},
};

/// Options of list and watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub label_selector: LabelSelector,
    pub field_selector: FieldSelector,
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    /// Unparsed; see [`list_resource_version`](Self::list_resource_version).
    pub resource_version: String,
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// Whether a match was given, even an unknown one.
    pub has_version_match: bool,
    pub timeout_seconds: Option<i64>,
    pub limit: i64,
    /// Unparsed; empty for the first page.
    pub continue_token: String,
    pub send_initial_events: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// Unparsed; see [`get_resource_version`](Self::get_resource_version).
    pub resource_version: String,
}

/// The relation of a list's revision to the requested resourceVersion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    Exact,
    NotOlderThan,
}

impl ListOptions {
    /// Parses and validates the options.
    ///
    /// # Errors
    /// A 400 if they cannot be parsed, a 422 if they are inconsistent.
    pub fn from_query(query: &QueryParameters<'_>) -> Result<Self, StatusError> {
        let options = Self {
            timeout_seconds: query.int("timeoutSeconds")?,
            limit: query.int("limit")?.unwrap_or(0),
            watch: query.flag("watch").unwrap_or(false),
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion"),
            resource_version_match: match query.get("resourceVersionMatch") {
                Some("Exact") => Some(ResourceVersionMatch::Exact),
                Some("NotOlderThan") => Some(ResourceVersionMatch::NotOlderThan),
                _ => None,
            },
            has_version_match: query.get("resourceVersionMatch").is_some_and(|text| !text.is_empty()),
            continue_token: query.text("continue"),
            send_initial_events: query.flag("sendInitialEvents"),
            label_selector: LabelSelector::parse(query.get("labelSelector").unwrap_or_default())?,
            field_selector: FieldSelector::parse(query.get("fieldSelector").unwrap_or_default())?,
        };
        let version_match = query.get("resourceVersionMatch").unwrap_or_default();
        let errors = if options.watch { options.check_watch(version_match) } else { options.check_list(version_match) };
        check("ListOptions", &errors)?;
        Ok(options)
    }

    /// The resourceVersion of a list; none if absent.
    ///
    /// # Errors
    /// A 400 if it is not a number.
    pub fn list_resource_version(&self) -> Result<Option<u64>, StatusError> {
        parse_version(&self.resource_version)
            .map_err(|why| StatusError::bad_request(format!("invalid resource version: {why}")))
    }

    /// The resourceVersion of a watch; none if absent.
    ///
    /// # Errors
    /// A 500 without a reason if it is not a number: kube-apiserver has no status for this storage error of a
    /// watch or a get.
    pub fn watch_resource_version(&self) -> Result<Option<u64>, StatusError> {
        parse_version(&self.resource_version)
            .map_err(|why| StatusError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", why))
    }

    /// Whether a watch begins with the existing objects by default: it has no resourceVersion.
    fn begins_with_state(&self) -> bool {
        self.watch
            && self.send_initial_events.is_none()
            && !self.has_version_match
            && matches!(self.resource_version.as_str(), "" | "0")
    }

    /// Whether a watch begins with the existing objects, explicitly or by default.
    pub fn sends_initial_events(&self) -> Option<bool> {
        self.send_initial_events.or(self.begins_with_state().then_some(true))
    }

    fn check_list(&self, version_match: &str) -> field::FieldErrors {
        let mut errors = Vec::new();
        let mut forbid = |field: &str, why| errors.push(field::FieldError::forbidden(field, why));
        let field = "resourceVersionMatch";
        if !version_match.is_empty() {
            if self.resource_version.is_empty() {
                forbid(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid(field, "resourceVersionMatch is forbidden when continue is provided");
            }
            if self.resource_version_match == Some(ResourceVersionMatch::Exact) && self.resource_version == "0" {
                forbid(field, r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#);
            }
        }
        if self.send_initial_events.is_some() {
            forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        if !version_match.is_empty() && self.resource_version_match.is_none() {
            let known = &["Exact", "NotOlderThan", ""];
            errors.push(field::FieldError::not_supported(field, &version_match.into(), known));
        }
        errors
    }

    fn check_watch(&self, version_match: &str) -> field::FieldErrors {
        let mut errors = Vec::new();
        let field = "resourceVersionMatch";
        let initial = self.send_initial_events.is_some();
        let not_older = self.resource_version_match == Some(ResourceVersionMatch::NotOlderThan);
        if initial && !not_older {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(field::FieldError::forbidden(field, why));
        }
        if version_match.is_empty() && !self.begins_with_state() {
            return errors;
        }
        if !initial && !self.begins_with_state() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(field::FieldError::forbidden(field, why));
        }
        if !not_older && !self.begins_with_state() {
            errors.push(field::FieldError::not_supported(field, &version_match.into(), &["NotOlderThan"]));
        }
        if !self.continue_token.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(field::FieldError::forbidden(field, why));
        }
        errors
    }
}

impl GetOptions {
    /// Parses the options.
    ///
    /// # Errors
    /// A 400 for a removed option.
    pub fn from_query(query: &QueryParameters<'_>) -> Result<Self, StatusError> {
        if query.flag("export") == Some(true) {
            let why = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(StatusError::bad_request(why));
        }
        Ok(Self { resource_version: query.text("resourceVersion") })
    }

    /// The resourceVersion; none if absent.
    ///
    /// # Errors
    /// A 500 without a reason if it is not a number, as in kube-apiserver.
    pub fn get_resource_version(&self) -> Result<Option<u64>, StatusError> {
        parse_version(&self.resource_version)
            .map_err(|why| StatusError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", why))
    }
}

fn parse_version(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let version = go_format::parse_uint(text);
    version.map(Some).map_err(|why| field::FieldError::invalid("resourceVersion", &text.into(), &why).to_string())
}
