//! What an autoscaler scales: anything with a subresource `scale`.

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

use crate::controller::MANAGER;

/// Tries to write a scale that others write, too.
const TRIES: usize = 5;

/// A target and its scale as it was read.
pub struct Target {
    api: Api<DynamicObject>,
    name: String,
    scale: Scale,
}

impl Target {
    /// Reads the scale; else why there is none, in kube-controller-manager's words.
    pub async fn read(client: &Client, namespace: &str, named: &CrossVersionObjectReference) -> Result<Self, String> {
        let kind = kind(named)?;
        let (resource, _) = oneshot::pinned_kind(client, &kind).await.map_err(|error| match error {
            kube::Error::Discovery(_) => no_match(&kind),
            kube::Error::Api(status) if status.code == 404 => no_match(&kind),
            error => words(&error),
        })?;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let scale = api.get_scale(&named.name).await.map_err(|error| words(&error))?;
        Ok(Self { api, name: named.name.clone(), scale })
    }

    /// How many replicas it should have.
    pub fn replicas(&self) -> i32 {
        self.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0)
    }

    /// Which pods are its own, as a text.
    pub fn selector(&self) -> &str {
        self.scale.status.as_ref().and_then(|status| status.selector.as_deref()).unwrap_or_default()
    }

    /// Gives it so many replicas; else why not.
    pub async fn rescale(&mut self, replicas: i32) -> Result<(), String> {
        let mut why = String::new();
        for _ in 0..TRIES {
            self.scale.spec = Some(ScaleSpec { replicas: Some(replicas) });
            let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
            match self.api.replace_scale(&self.name, &params, &self.scale).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => why = status.message,
                Err(error) => return Err(words(&error)),
            }
            self.scale = self.api.get_scale(&self.name).await.map_err(|error| words(&error))?;
        }
        Err(why)
    }
}

fn kind(named: &CrossVersionObjectReference) -> Result<GroupVersionKind, String> {
    let version = named.api_version.as_deref().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    if version.contains('/') {
        return Err(format!("unexpected GroupVersion string: {group}/{version}"));
    }
    // The core group has one version.
    Ok(GroupVersionKind::gvk(group, if version.is_empty() { "v1" } else { version }, &named.kind))
}

fn no_match(kind: &GroupVersionKind) -> String {
    format!("no matches for kind {:?} in group {:?}", kind.kind, kind.group)
}

fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
