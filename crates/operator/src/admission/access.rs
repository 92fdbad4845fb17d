//! Whether a user may read what a resource of theirs names.

use std::fmt;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    authentication::v1::UserInfo,
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use kubewake_api::{Reference, ReferenceKind};

use super::Objects;

/// Questions under way at once for one call. A pipeline names a handful of objects, and 80 at the most.
const AT_ONCE: usize = 8;

/// A Secret or a ConfigMap. Who may read it may read all of its keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    kind: ReferenceKind,
    namespace: String,
    name: String,
}

impl Object {
    /// A Secret.
    pub(super) fn secret(namespace: &str, name: &str) -> Self {
        Self { kind: ReferenceKind::Secret, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl From<&Reference> for Object {
    fn from(reference: &Reference) -> Self {
        Self { kind: reference.kind, namespace: reference.namespace.clone(), name: reference.name.clone() }
    }
}

/// `Secret default/backend`
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// Those that the user may not read.
pub(super) async fn forbidden(client: &Client, user: &UserInfo, named: &Objects) -> Result<Vec<Object>, kube::Error> {
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let asked = stream::iter(named.iter().cloned()).map(|object| {
        let (reviews, question) = (&reviews, question(user, &object));
        async move {
            let answer = reviews.create(&PostParams::default(), &question).await?;
            let allowed = answer.status.is_some_and(|status| status.allowed);
            Ok::<_, kube::Error>((!allowed).then_some(object))
        }
    });
    let asked: Vec<Option<Object>> = asked.buffered(AT_ONCE).try_collect().await?;
    Ok(asked.into_iter().flatten().collect())
}

fn question(user: &UserInfo, object: &Object) -> SubjectAccessReview {
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
