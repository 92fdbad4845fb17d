//! What the fuzz targets reach of private modules. Nothing is decided here.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use http::HeaderMap;
use serde_json::Value;

use crate::{
    admission,
    api::field::Errors,
    auth,
    auth::{authenticate::Identity, authorize::Decision},
    crd,
    crd::validate::pattern::Pattern,
    kinds,
    trace::Context,
};

pub fn read_admission_answer(bytes: &[u8]) -> Result<Value, String> {
    admission::answer::read(bytes)
}

/// Whether a definition is valid.
pub fn check_definition(definition: &Value) -> bool {
    let mut errors = Errors::default();
    crd::check::create(definition, &mut errors);
    errors.is_empty()
}

pub fn pattern_problem(text: &str) -> Option<String> {
    Pattern::new(text).problem().map(str::to_owned)
}

pub fn cron(schedule: &str) -> Result<(), String> {
    kinds::batch::cron::check(kinds::batch::cron::split_zone(schedule).1)
}

pub fn trace_context(headers: &HeaderMap) -> Option<Context> {
    Context::extract(headers)
}

/// Whether the text has the form of a token.
pub fn parse_token(token: &str) -> bool {
    auth::tokens::verify::is_token(token)
}

/// Whose token it is, by the answer of an authentication webhook.
pub fn token_identity(answer: &Value, wanted: &[String], own: &[String]) -> Result<Option<Identity>, String> {
    auth::webhook::tokens::identity(answer, wanted, &own.into())
}

/// What the answer of an authorization webhook means.
pub fn decision(answer: &Value) -> Decision {
    auth::webhook::access::decision(answer)
}
