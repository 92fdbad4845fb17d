//! Whether a user may read the objects that a resource names.

use std::fmt;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    authentication::v1::UserInfo,
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use kubewake_api::{ReferenceKind, ValueReference};

use super::AccessTargets;

/// Access reviews in flight for one call. A pipeline names a handful of objects, and 80 at the most.
const MAX_CONCURRENT_REVIEWS: usize = 8;

/// A Secret or a ConfigMap. A user who may read it may read all of its keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AccessTarget {
    kind: ReferenceKind,
    namespace: String,
    name: String,
}

impl AccessTarget {
    pub(super) fn secret(namespace: &str, name: &str) -> Self {
        Self { kind: ReferenceKind::Secret, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl From<&ValueReference> for AccessTarget {
    fn from(reference: &ValueReference) -> Self {
        Self { kind: reference.kind, namespace: reference.namespace.clone(), name: reference.name.clone() }
    }
}

impl fmt::Display for AccessTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// The objects among these that the user may not read.
pub(super) async fn forbidden_objects(
    client: &Client,
    user: &UserInfo,
    named: &AccessTargets,
) -> Result<Vec<AccessTarget>, kube::Error> {
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let asked = stream::iter(named.iter().cloned()).map(|object| {
        let reviews = &reviews;
        let question = access_review(user, &object);
        async move {
            let answer = reviews.create(&PostParams::default(), &question).await?;
            let allowed = answer.status.is_some_and(|status| status.allowed);
            Ok::<_, kube::Error>((!allowed).then_some(object))
        }
    });
    let asked: Vec<Option<AccessTarget>> = asked.buffered(MAX_CONCURRENT_REVIEWS).try_collect().await?;
    Ok(asked.into_iter().flatten().collect())
}

fn access_review(user: &UserInfo, object: &AccessTarget) -> SubjectAccessReview {
    let resource = match object.kind {
        ReferenceKind::Secret => "secrets",
        ReferenceKind::ConfigMap => "configmaps",
    };
    let attributes = ResourceAttributes {
        verb: Some("get".to_owned()),
        version: Some("v1".to_owned()),
        resource: Some(resource.to_owned()),
        namespace: Some(object.namespace.clone()),
        name: Some(object.name.clone()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: user.username.clone(),
        groups: user.groups.clone(),
        uid: user.uid.clone(),
        extra: user.extra.clone(),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    SubjectAccessReview { spec, ..SubjectAccessReview::default() }
}
