//! Admission: what others say about a write before it happens.

use serde_json::Value;

use crate::{api::Status, codec::query::WriteOptions, handler::call::On};

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// A write that is to be admitted.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// What happens.
    pub operation: Operation,
    /// Where, and on whose behalf.
    pub on: On<'a>,
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// How it was asked for.
    pub options: WriteOptions,
}

/// All webhooks that are configured.
#[derive(Debug, Default)]
pub struct Admission {}

impl Admission {
    /// Lets mutating webhooks change the object. For a deletion it is null.
    pub async fn mutate(
        &self,
        _request: &Request<'_>,
        _object: &mut Value,
        _old: Option<&Value>,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// Asks validating webhooks.
    pub async fn validate(
        &self,
        _request: &Request<'_>,
        _object: Option<&Value>,
        _old: Option<&Value>,
    ) -> Result<(), Status> {
        Ok(())
    }
}
