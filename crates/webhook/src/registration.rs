//! The registration of a webhook with the API server.
//!
//! A [`WebhookRegistration`] has the desired state of a `MutatingWebhookConfiguration` or a
//! `ValidatingWebhookConfiguration`, except for the `caBundle`, which changes with the certificates.
//! [`WebhookRegistration::ensure`] writes it by server-side apply, and only where the live object differs: a
//! restart writes nothing, and two replicas do not wake each other.
//!
//! *Guaranteed*: every field that is ours has our value after `ensure`, whoever changed it. *Not done*:
//! additions by others, such as another webhook in the same object or a match condition, stay as server-side
//! apply leaves them.

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

/// The namespace of a webhook's Service as an owner of its registration: the garbage collector removes the
/// registration after the namespace is deleted, when no webhook is left to call. Requires the right to get the
/// namespace.
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

/// The webhooks of a registration. The `caBundle` of each webhook is filled in.
#[derive(Clone, Debug)]
pub enum WebhookSet {
    /// Webhooks that may change objects.
    Mutating(Vec<MutatingWebhook>),
    /// Webhooks that may refuse objects.
    Validating(Vec<ValidatingWebhook>),
}

/// A registration with its desired state.
#[derive(Clone, Debug)]
pub struct WebhookRegistration {
    api: Api<DynamicObject>,
    name: String,
    manager: String,
    webhooks: WebhookSet,
    owner: Option<OwnerReference>,
}

impl WebhookRegistration {
    /// Creates a registration of this name, owned by this field manager.
    pub fn new(client: Client, name: &str, manager: &str, webhooks: WebhookSet) -> Self {
        let resource = match webhooks {
            WebhookSet::Mutating(_) => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            WebhookSet::Validating(_) => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        };
        let api = Api::all_with(client, &resource);
        Self { api, name: name.to_owned(), manager: manager.to_owned(), webhooks, owner: None }
    }

    /// Sets an owner, which must be cluster-scoped; the registration is deleted with it. A registration that
    /// outlives its webhook can block writes.
    #[must_use]
    pub fn owned_by(mut self, owner: OwnerReference) -> Self {
        self.owner = Some(owner);
        self
    }

    /// The name of the registration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of the registration.
    pub fn kind(&self) -> &'static str {
        match self.webhooks {
            WebhookSet::Mutating(_) => MutatingWebhookConfiguration::KIND,
            WebhookSet::Validating(_) => ValidatingWebhookConfiguration::KIND,
        }
    }

    /// The field manager of the registration.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// The API of the registration's kind.
    pub fn api(&self) -> &Api<DynamicObject> {
        &self.api
    }

    /// Whether a live object has the desired state with this bundle.
    pub fn matches(&self, live: &DynamicObject, bundle: &str) -> Result<bool, serde_json::Error> {
        Ok(self.differences(live, bundle)?.is_empty())
    }

    /// The paths at which a live object differs from the desired state with this bundle.
    pub fn differences(&self, live: &DynamicObject, bundle: &str) -> Result<Vec<String>, serde_json::Error> {
        Ok(compare::differences(&self.desired_object(bundle)?, &serde_json::to_value(live)?))
    }

    /// Gets the live object.
    pub async fn get(&self) -> Result<Option<DynamicObject>, kube::Error> {
        self.api.get_opt(&self.name).await
    }

    /// Applies the desired state and returns the resulting object.
    pub async fn write(&self, bundle: &str) -> Result<DynamicObject, kube::Error> {
        let wanted = self.desired_object(bundle).map_err(kube::Error::SerdeError)?;
        let params = PatchParams::apply(&self.manager).force();
        self.api.patch(&self.name, &params, &Patch::Apply(&wanted)).await
    }

    /// Gets the live object and applies the desired state if it differs. Returns whether a write was necessary.
    pub async fn ensure(&self, live: &mut Option<DynamicObject>, bundle: &str) -> Result<bool, kube::Error> {
        *live = self.get().await?;
        if let Some(live) = live
            && self.matches(live, bundle).map_err(kube::Error::SerdeError)?
        {
            return Ok(false);
        }
        *live = Some(self.write(bundle).await?);
        Ok(true)
    }

    /// Deletes the live object, if it is unchanged since it was seen.
    pub async fn remove(&self, seen: &DynamicObject) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: seen.uid(), resource_version: seen.resource_version() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.api.delete(&self.name, &params).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            removed => removed.map(drop),
        }
    }

    /// The desired state of the object.
    fn desired_object(&self, bundle: &str) -> Result<Value, serde_json::Error> {
        let bundle = || Some(ByteString(bundle.as_bytes().to_vec()));
        match &self.webhooks {
            WebhookSet::Mutating(hooks) => {
                let mut hooks = hooks.clone();
                hooks.iter_mut().for_each(|hook| hook.client_config.ca_bundle = bundle());
                self.to_object(&MutatingWebhookConfiguration { metadata: ObjectMeta::default(), webhooks: Some(hooks) })
            }
            WebhookSet::Validating(hooks) => {
                let mut hooks = hooks.clone();
                hooks.iter_mut().for_each(|hook| hook.client_config.ca_bundle = bundle());
                self.to_object(&ValidatingWebhookConfiguration {
                    metadata: ObjectMeta::default(),
                    webhooks: Some(hooks),
                })
            }
        }
    }

    fn to_object(&self, configuration: &impl Serialize) -> Result<Value, serde_json::Error> {
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
