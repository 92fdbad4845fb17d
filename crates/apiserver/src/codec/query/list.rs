//! Options of get, list and watch.

use super::{Query, check};
use crate::{
    api::{Status, field, go},
    codec::selector::{FieldSelector, LabelSelector},
};

/// Options of list and watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct ListOptions {
    pub label_selector: LabelSelector,
    pub field_selector: FieldSelector,
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    /// As it was given; see [`version_of_list`](Self::version_of_list).
    pub resource_version: String,
    pub resource_version_match: Option<VersionMatch>,
    /// Whether a match was given, even one that is not known.
    pub has_version_match: bool,
    pub timeout_seconds: Option<i64>,
    /// Zero or less: all.
    pub limit: i64,
    /// As it was given; empty for the first page.
    pub continue_token: String,
    pub send_initial_events: Option<bool>,
}

/// Options of get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// As it was given; see [`version`](Self::version).
    pub resource_version: String,
}

/// How a list's state relates to the resourceVersion that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
}

impl ListOptions {
    /// Reads and checks the options.
    ///
    /// # Errors
    /// A 400 for what cannot be read, a 422 for what does not fit together.
    pub fn from_query(query: &Query<'_>) -> Result<Self, Status> {
        let options = Self {
            timeout_seconds: query.int("timeoutSeconds")?,
            limit: query.int("limit")?.unwrap_or(0),
            watch: query.flag("watch").unwrap_or(false),
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion"),
            resource_version_match: match query.get("resourceVersionMatch") {
                Some("Exact") => Some(VersionMatch::Exact),
                Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
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

    /// The resourceVersion of a list: none if it was not given.
    ///
    /// # Errors
    /// A 400 if it is no number.
    pub fn version_of_list(&self) -> Result<Option<u64>, Status> {
        parse_version(&self.resource_version)
            .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))
    }

    /// The resourceVersion of a watch: none if it was not given.
    ///
    /// # Errors
    /// A 500 without a reason if it is no number: kube-apiserver has no status for what its storage says of a watch or a get.
    pub fn version_of_watch(&self) -> Result<Option<u64>, Status> {
        parse_version(&self.resource_version)
            .map_err(|why| Status::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", why))
    }

    /// Whether a watch begins with what exists although it does not say so: it names no version.
    fn begins_with_state(&self) -> bool {
        self.watch
            && self.send_initial_events.is_none()
            && !self.has_version_match
            && matches!(self.resource_version.as_str(), "" | "0")
    }

    /// Whether a watch begins with what exists, as it says or as it is without a word.
    pub fn initial_events(&self) -> Option<bool> {
        self.send_initial_events.or(self.begins_with_state().then_some(true))
    }

    fn check_list(&self, version_match: &str) -> field::Errors {
        let mut errors = Vec::new();
        let mut forbid = |field: &str, why| errors.push(field::Error::forbidden(field, why));
        let field = "resourceVersionMatch";
        if !version_match.is_empty() {
            if self.resource_version.is_empty() {
                forbid(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid(field, "resourceVersionMatch is forbidden when continue is provided");
            }
            if self.resource_version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
                forbid(field, r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#);
            }
        }
        if self.send_initial_events.is_some() {
            forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        if !version_match.is_empty() && self.resource_version_match.is_none() {
            let known = &["Exact", "NotOlderThan", ""];
            errors.push(field::Error::not_supported(field, &version_match.into(), known));
        }
        errors
    }

    fn check_watch(&self, version_match: &str) -> field::Errors {
        let mut errors = Vec::new();
        let field = "resourceVersionMatch";
        let initial = self.send_initial_events.is_some();
        let not_older = self.resource_version_match == Some(VersionMatch::NotOlderThan);
        if initial && !not_older {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(field::Error::forbidden(field, why));
        }
        if version_match.is_empty() && !self.begins_with_state() {
            return errors;
        }
        if !initial && !self.begins_with_state() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(field::Error::forbidden(field, why));
        }
        if !not_older && !self.begins_with_state() {
            errors.push(field::Error::not_supported(field, &version_match.into(), &["NotOlderThan"]));
        }
        if !self.continue_token.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(field::Error::forbidden(field, why));
        }
        errors
    }
}

impl GetOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// A 400 for one that is no longer there.
    pub fn from_query(query: &Query<'_>) -> Result<Self, Status> {
        if query.flag("export") == Some(true) {
            let why = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(Status::bad_request(why));
        }
        Ok(Self { resource_version: query.text("resourceVersion") })
    }

    /// The resourceVersion: none if it was not given.
    ///
    /// # Errors
    /// A 500 without a reason if it is no number, as in kube-apiserver.
    pub fn version(&self) -> Result<Option<u64>, Status> {
        parse_version(&self.resource_version)
            .map_err(|why| Status::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", why))
    }
}

fn parse_version(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let version = go::parse_uint(text);
    version.map(Some).map_err(|why| field::Error::invalid("resourceVersion", &text.into(), &why).to_string())
}
