//! Kinds that are asked and not stored: access and identity reviews.

use http::StatusCode;
use serde_json::Value;

use super::{answer::Answer, call::On, decode};
use crate::{
    admission::Operation,
    api::Status,
    auth::reviews,
    codec::query::{Query, WriteOptions},
};

/// Answers a review.
pub async fn answer(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let options = WriteOptions::create(&Query::parse(&on.call.query))?;
    let mut review: Value = decode::object(on, body, &options)?;
    on.writer(&options).owner(&on).update(None, &mut review);
    let (admission, request) = (&on.core().admission, on.review(Operation::Create, &options));
    admission.mutate(&request, &mut review, None).await?;
    admission.validate(&request, Some(&review), None).await?;
    let (user, access) = (&on.call.user, &on.core().access);
    let answered = match &*on.resource.kind {
        "SubjectAccessReview" => reviews::subject_access(review, &access.authorizers).await?,
        "LocalSubjectAccessReview" => {
            reviews::local_subject_access(review, on.namespace(), &access.authorizers).await?
        }
        "SelfSubjectAccessReview" => reviews::self_subject_access(review, user, &access.authorizers).await?,
        "SelfSubjectRulesReview" => reviews::self_subject_rules(&review, user, &access.rbac)?,
        "SelfSubjectReview" => reviews::self_subject(user, (on.core().clock)()),
        "TokenReview" => reviews::token(review, access.tokens.audiences(), &access.authentication).await?,
        _ => return Err(Status::no_such_path()),
    };
    Ok(Answer::Object(StatusCode::CREATED, answered))
}
