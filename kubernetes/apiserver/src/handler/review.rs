//! Access and identity reviews, which are answered and not stored.

use http::StatusCode;
use serde_json::Value;

use super::{call::ResourceRequest, decode, handler_response::HandlerResponse};
use crate::{
    admission::AdmissionOperation,
    api::StatusError,
    auth::reviews,
    codec::query::{QueryParameters, WriteOptions},
};

pub async fn handle_review(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    let options = WriteOptions::for_create(&QueryParameters::parse(&on.call.query))?;
    let mut review: Value = decode::object(on, body, &options)?;
    on.writer_identity(&options).field_manager(&on).update(None, &mut review);
    let admission = &on.core().admission;
    let request = on.review(AdmissionOperation::Create, &options);
    admission.mutate(&request, &mut review, None).await?;
    admission.validate(&request, Some(&review), None).await?;
    let user = &on.call.user;
    let access = &on.core().access;
    let answered = match &*on.resource.kind {
        "SubjectAccessReview" => reviews::review_subject_access(review, &access.authorizers).await?,
        "LocalSubjectAccessReview" => {
            reviews::review_local_subject_access(review, on.namespace(), &access.authorizers).await?
        }
        "SelfSubjectAccessReview" => reviews::review_self_subject_access(review, user, &access.authorizers).await?,
        "SelfSubjectRulesReview" => reviews::review_self_subject_rules(&review, user, &access.rbac)?,
        "SelfSubjectReview" => reviews::review_self_subject(user, (on.core().clock)()),
        "TokenReview" => reviews::review_token(review, access.tokens.audiences(), &access.authentication).await?,
        _ => return Err(StatusError::no_such_path()),
    };
    Ok(HandlerResponse::Object(StatusCode::CREATED, answered))
}
