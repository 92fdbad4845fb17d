//! Entry points of the fuzz targets to private modules, without logic of their own.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use http::HeaderMap;
use serde_json::Value;

use crate::{
    admission,
    api::field::FieldErrors,
    auth,
    auth::{authenticate::TokenIdentity, authorize::AuthorizationDecision},
    crd,
    crd::validate::pattern::SchemaPattern,
    kinds,
    trace::SpanContext,
};

pub fn read_admission_answer(bytes: &[u8]) -> Result<Value, String> {
    admission::response::decode_review(bytes)
}

pub fn check_definition(definition: &Value) -> bool {
    let mut errors = FieldErrors::default();
    crd::definition_check::create(definition, &mut errors);
    errors.is_empty()
}

pub fn pattern_problem(text: &str) -> Option<String> {
    SchemaPattern::new(text).problem().map(str::to_owned)
}

pub fn cron(schedule: &str) -> Result<(), String> {
    kinds::batch::cron::check(kinds::batch::cron::split_zone(schedule).1)
}

pub fn trace_context(headers: &HeaderMap) -> Option<SpanContext> {
    SpanContext::extract(headers)
}

/// Whether the text is a well-formed token.
pub fn parse_token(token: &str) -> bool {
    auth::tokens::verify::is_token(token)
}

/// The identity in the response of an authentication webhook.
pub fn token_identity(answer: &Value, wanted: &[String], own: &[String]) -> Result<Option<TokenIdentity>, String> {
    auth::webhook::authenticator::identity_from_review(answer, wanted, &own.into())
}

/// The decision in the response of an authorization webhook.
pub fn decision(answer: &Value) -> AuthorizationDecision {
    auth::webhook::authorizer::decision_from_review(answer)
}
