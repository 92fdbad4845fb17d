//! The registration of a webhook with the API server, kept as it should be.
//!
//! A [`Registration`] knows what a `MutatingWebhookConfiguration` or a `ValidatingWebhookConfiguration` should say, but for the `caBundle`, which changes with the
//! certificates. [`Registration::renew`] writes it by server-side apply, and only where the live object differs: a start writes nothing that is there
//! already, and two replicas do not wake each other.
//!
//! *Guaranteed*: every field that is ours has our value after `renew`, whoever changed it. *Not done*: what others add beside it, such as another webhook in the
//! same object or a match condition of their own, stays as server-side apply leaves it.

use k8s_openapi::{
    ByteString, Resource as _,
    api::{
        admissionregistration::v1::{
            MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhook, ValidatingWebhookConfiguration,
        },
        core::v1::Namespace,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
    core::ObjectMeta,
};
use serde::Serialize;
use serde_json::Value;

mod compare;

/// The namespace of a webhook's Service as the owner of its registration: the garbage collector removes the registration once the
/// namespace is gone, when nobody is left who answers. Needs the right to get this namespace.
pub async fn namespace_owner(client: &Client, namespace: &str) -> Result<OwnerReference, kube::Error> {
    let found = Api::<Namespace>::all(client.clone()).get(namespace).await?;
    Ok(OwnerReference {
        api_version: Namespace::API_VERSION.to_owned(),
        kind: Namespace::KIND.to_owned(),
        name: namespace.to_owned(),
        uid: found.uid().unwrap_or_default(),
        ..OwnerReference::default()
    })
}

/// What is registered. The `caBundle` of each webhook is filled in.
#[derive(Clone, Debug)]
pub enum Hooks {
    /// They may change objects.
    Mutating(Vec<MutatingWebhook>),
    /// They may refuse objects.
    Validating(Vec<ValidatingWebhook>),
}

/// A registration that is kept as it should be.
#[derive(Clone, Debug)]
pub struct Registration {
    api: Api<DynamicObject>,
    name: String,
    manager: String,
    hooks: Hooks,
    owner: Option<OwnerReference>,
}

impl Registration {
    /// One of this name, owned by this field manager.
    pub fn new(client: Client, name: &str, manager: &str, hooks: Hooks) -> Self {
        let resource = match hooks {
            Hooks::Mutating(_) => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            Hooks::Validating(_) => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        };
        let api = Api::all_with(client, &resource);
        Self { api, name: name.to_owned(), manager: manager.to_owned(), hooks, owner: None }
    }

    /// Gone when this object is, which must be in no namespace either: a registration that outlives all who answer keeps objects from being written.
    #[must_use]
    pub fn owned_by(mut self, owner: OwnerReference) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its kind.
    pub fn kind(&self) -> &'static str {
        match self.hooks {
            Hooks::Mutating(_) => MutatingWebhookConfiguration::KIND,
            Hooks::Validating(_) => ValidatingWebhookConfiguration::KIND,
        }
    }

    /// Who owns its fields.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// The objects of its kind.
    pub fn api(&self) -> &Api<DynamicObject> {
        &self.api
    }

    /// Whether a live object says all that it should with this bundle.
    pub fn is_in(&self, live: &DynamicObject, bundle: &str) -> Result<bool, serde_json::Error> {
        Ok(self.differences(live, bundle)?.is_empty())
    }

    /// Where a live object does not say what it should with this bundle, as paths.
    pub fn differences(&self, live: &DynamicObject, bundle: &str) -> Result<Vec<String>, serde_json::Error> {
        Ok(compare::differences(&self.wanted(bundle)?, &serde_json::to_value(live)?))
    }

    /// The object as it is now.
    pub async fn look(&self) -> Result<Option<DynamicObject>, kube::Error> {
        self.api.get_opt(&self.name).await
    }

    /// Makes the object what it should be, whatever it is, and gives what it is then.
    pub async fn write(&self, bundle: &str) -> Result<DynamicObject, kube::Error> {
        let wanted = self.wanted(bundle).map_err(kube::Error::SerdeError)?;
        let params = PatchParams::apply(&self.manager).force();
        self.api.patch(&self.name, &params, &Patch::Apply(&wanted)).await
    }

    /// Looks at the object as it is now, and makes it what it should be. Says whether it had to be written.
    pub async fn renew(&self, live: &mut Option<DynamicObject>, bundle: &str) -> Result<bool, kube::Error> {
        *live = self.look().await?;
        if let Some(live) = live
            && self.is_in(live, bundle).map_err(kube::Error::SerdeError)?
        {
            return Ok(false);
        }
        *live = Some(self.write(bundle).await?);
        Ok(true)
    }

    /// Removes it, if it is still as it was seen.
    pub async fn remove(&self, seen: &DynamicObject) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: seen.uid(), resource_version: seen.resource_version() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.api.delete(&self.name, &params).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            removed => removed.map(drop),
        }
    }

    /// The object as it should be.
    fn wanted(&self, bundle: &str) -> Result<Value, serde_json::Error> {
        let bundle = || Some(ByteString(bundle.as_bytes().to_vec()));
        match &self.hooks {
            Hooks::Mutating(hooks) => {
                let mut hooks = hooks.clone();
                hooks.iter_mut().for_each(|hook| hook.client_config.ca_bundle = bundle());
                self.object(&MutatingWebhookConfiguration { metadata: ObjectMeta::default(), webhooks: Some(hooks) })
            }
            Hooks::Validating(hooks) => {
                let mut hooks = hooks.clone();
                hooks.iter_mut().for_each(|hook| hook.client_config.ca_bundle = bundle());
                self.object(&ValidatingWebhookConfiguration { metadata: ObjectMeta::default(), webhooks: Some(hooks) })
            }
        }
    }

    fn object(&self, configuration: &impl Serialize) -> Result<Value, serde_json::Error> {
        let mut object = serde_json::to_value(configuration)?;
        if let Some(object) = object.as_object_mut() {
            let mut metadata = serde_json::json!({
                "name": self.name, "labels": { "app.kubernetes.io/managed-by": self.manager },
            });
            if let (Some(owner), Some(metadata)) = (&self.owner, metadata.as_object_mut()) {
                metadata.insert("ownerReferences".into(), serde_json::to_value([owner])?);
            }
            object.insert("metadata".into(), metadata);
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests;
