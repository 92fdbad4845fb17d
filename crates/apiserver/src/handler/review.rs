//! Kinds that are asked and not stored: access and identity reviews.

use http::StatusCode;
use serde_json::Value;

use super::{answer::Answer, call::On, decode};
use crate::{
    api::Status,
    auth::reviews,
    codec::query::{Query, WriteOptions},
};

/// Answers a review.
pub async fn answer(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let options = WriteOptions::create(&Query::parse(&on.call.query))?;
    let mut review: Value = decode::object(on, body, &options)?;
    reviews::answer(&mut review, on.namespace(), &on.call.user, &on.core().auth).await?;
    Ok(Answer::Object(StatusCode::CREATED, review))
}
