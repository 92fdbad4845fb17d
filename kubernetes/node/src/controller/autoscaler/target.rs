//! The target of an autoscaler: any object with a `scale` subresource.

use k8s_openapi::api::{
    autoscaling::v1::{Scale, ScaleSpec},
    autoscaling::v2::CrossVersionObjectReference,
};
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
    core::GroupVersionKind,
    discovery::oneshot,
};

use crate::controller::FIELD_MANAGER;

/// The write attempts for a scale that others change, too.
const MAX_SCALE_WRITE_ATTEMPTS: usize = 5;

/// A target with its scale.
pub struct ScaleTarget {
    api: Api<DynamicObject>,
    name: String,
    scale: Scale,
}

impl ScaleTarget {
    /// Reads the scale; an error is in kube-controller-manager's words.
    pub async fn read(client: &Client, namespace: &str, named: &CrossVersionObjectReference) -> Result<Self, String> {
        let kind = parse_kind(named)?;
        let (resource, _) = oneshot::pinned_kind(client, &kind).await.map_err(|error| match error {
            kube::Error::Discovery(_) => no_match(&kind),
            kube::Error::Api(status) if status.code == 404 => no_match(&kind),
            error => error_message(&error),
        })?;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let scale = api.get_scale(&named.name).await.map_err(|error| error_message(&error))?;
        Ok(Self { api, name: named.name.clone(), scale })
    }

    /// The desired number of replicas.
    pub fn replicas(&self) -> i32 {
        self.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0)
    }

    /// The selector of the target's pods, as text.
    pub fn selector(&self) -> &str {
        self.scale.status.as_ref().and_then(|status| status.selector.as_deref()).unwrap_or_default()
    }

    /// Sets the number of replicas, or returns the reason why not.
    pub async fn rescale(&mut self, replicas: i32) -> Result<(), String> {
        let mut why = String::new();
        for _ in 0..MAX_SCALE_WRITE_ATTEMPTS {
            self.scale.spec = Some(ScaleSpec { replicas: Some(replicas) });
            let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
            match self.api.replace_scale(&self.name, &params, &self.scale).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => why = status.message,
                Err(error) => return Err(error_message(&error)),
            }
            self.scale = self.api.get_scale(&self.name).await.map_err(|error| error_message(&error))?;
        }
        Err(why)
    }
}

fn parse_kind(named: &CrossVersionObjectReference) -> Result<GroupVersionKind, String> {
    let version = named.api_version.as_deref().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    if version.contains('/') {
        return Err(format!("unexpected GroupVersion string: {group}/{version}"));
    }
    // Without an `apiVersion` the kind is in the core group, which has one version.
    Ok(GroupVersionKind::gvk(group, if version.is_empty() { "v1" } else { version }, &named.kind))
}

fn no_match(kind: &GroupVersionKind) -> String {
    format!("no matches for kind {:?} in group {:?}", kind.kind, kind.group)
}

fn error_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
