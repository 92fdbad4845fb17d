//! Objects of manifests, applied as `kubectl apply --server-side` does, and waited for.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, anyhow};
use k8s_openapi::{api::apps::v1::Deployment, serde::de::DeserializeOwned};
use kube::{
    Api, Client, Resource,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{self, ApiCapabilities, ApiResource, Scope},
    runtime::wait::await_condition,
};
use kubewake_trail::in_words;
use serde_json::{Value, json};
use tokio::time::Instant;

/// A kind is served, and a webhook reached, a moment after it was made; only a broken system needs this long.
const SERVED: Duration = Duration::from_secs(90);
/// How often it is asked for until then.
const PAUSE: Duration = Duration::from_millis(50);

/// Applies objects in one name.
pub(crate) struct Objects {
    client: Client,
    manager: &'static str,
    kinds: HashMap<(String, String), (ApiResource, ApiCapabilities)>,
}

/// What an object is called, for people and for paths.
struct Name<'a> {
    version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> Name<'a> {
    fn of(object: &'a Value) -> anyhow::Result<Self> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let has = |path: &str| text(path).with_context(|| format!("an object has no {path}"));
        Ok(Self {
            version: has("/apiVersion")?,
            kind: has("/kind")?,
            namespace: text("/metadata/namespace"),
            name: has("/metadata/name")?,
        })
    }
}

impl Objects {
    /// Whoever is called so owns the fields that it applies.
    pub(crate) fn new(client: Client, manager: &'static str) -> Self {
        Self { client, manager, kinds: HashMap::new() }
    }

    /// Applies them one after the other.
    pub(crate) async fn apply_all(&mut self, objects: &[Value]) -> anyhow::Result<()> {
        for object in objects {
            self.apply(object).await?;
        }
        Ok(())
    }

    /// Applies it, over whoever else set its fields, and gives what it is now.
    pub(crate) async fn apply(&mut self, object: &Value) -> anyhow::Result<DynamicObject> {
        self.write(object, PatchParams::apply(self.manager).force()).await
    }

    /// Gives what it would be.
    pub(crate) async fn try_out(&mut self, object: &Value) -> anyhow::Result<DynamicObject> {
        self.write(object, PatchParams::apply(self.manager).force().dry_run()).await
    }

    /// What it is now, if it is there.
    pub(crate) async fn get(&mut self, object: &Value) -> anyhow::Result<Option<DynamicObject>> {
        let name = Name::of(object)?;
        let found = self.api(&name).await?.get_opt(name.name).await;
        found.map_err(|error| anyhow!("{} {} cannot be read: {}", name.kind, name.name, in_words(&error)))
    }

    /// A webhook that is registered may not be reached yet, or not again: what fails for such a reason is tried again.
    async fn write(&mut self, object: &Value, how: PatchParams) -> anyhow::Result<DynamicObject> {
        let name = Name::of(object)?;
        let api = self.api(&name).await?;
        let deadline = Instant::now() + SERVED;
        loop {
            match api.patch(name.name, &how, &Patch::Apply(object)).await {
                Ok(applied) => return Ok(applied),
                Err(kube::Error::Api(status)) if status.code >= 500 && Instant::now() < deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    return Err(anyhow!("{} {} cannot be applied: {}", name.kind, name.name, in_words(&error)));
                }
            }
        }
    }

    /// Where it is read and written.
    pub(crate) async fn api_of(&mut self, object: &Value) -> anyhow::Result<Api<DynamicObject>> {
        self.api(&Name::of(object)?).await
    }

    async fn api(&mut self, name: &Name<'_>) -> anyhow::Result<Api<DynamicObject>> {
        let key = (name.version.to_owned(), name.kind.to_owned());
        let found = match self.kinds.get(&key) {
            Some(found) => found.clone(),
            None => {
                let found = self.find(name).await?;
                self.kinds.insert(key, found.clone());
                found
            }
        };
        let (resource, can) = found;
        Ok(match (can.scope, name.namespace) {
            (Scope::Cluster, _) => Api::all_with(self.client.clone(), &resource),
            (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            (Scope::Namespaced, None) => Api::default_namespaced_with(self.client.clone(), &resource),
        })
    }

    async fn find(&self, name: &Name<'_>) -> anyhow::Result<(ApiResource, ApiCapabilities)> {
        let (group, version) = name.version.rsplit_once('/').unwrap_or(("", name.version));
        let wanted = GroupVersionKind::gvk(group, version, name.kind);
        let deadline = Instant::now() + SERVED;
        loop {
            match discovery::pinned_kind(&self.client, &wanted).await {
                Ok(found) => return Ok(found),
                Err(error) if Instant::now() > deadline => {
                    return Err(anyhow!("the cluster does not know {}: {}", name.kind, in_words(&error)));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// The objects of a manifest.
pub(crate) fn parse(manifest: &str) -> anyhow::Result<Vec<Value>> {
    serde_saphyr::from_multiple(manifest).context("a manifest of this program cannot be read")
}

/// The Deployment of this name among these objects.
pub(crate) fn deployment<'a>(objects: &'a mut [Value], name: &str) -> anyhow::Result<&'a mut Value> {
    let is_it = |object: &&mut Value| Name::of(object).is_ok_and(|it| it.kind == "Deployment" && it.name == name);
    objects.iter_mut().find(is_it).with_context(|| format!("there is no Deployment {name} in the manifest"))
}

/// Gives the first container of a Deployment this variable, in place of one that it had.
pub(crate) fn set_variable(deployment: &mut Value, name: &str, value: &str) {
    let Some(container) = deployment.pointer_mut("/spec/template/spec/containers/0").and_then(Value::as_object_mut)
    else {
        return;
    };
    if let Value::Array(variables) = container.entry("env").or_insert_with(|| json!([])) {
        variables.retain(|variable| variable.get("name").and_then(Value::as_str) != Some(name));
        variables.push(json!({"name": name, "value": value}));
    }
}

/// Waits until a Deployment runs as it should now.
pub(crate) async fn available(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let is_available = |deployment: &Deployment| {
        let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
        let wanted = spec.replicas.unwrap_or(1);
        status.observed_generation >= deployment.metadata.generation
            && status.available_replicas.unwrap_or(0) >= wanted
            && status.updated_replicas.unwrap_or(0) >= wanted
    };
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    becomes(api, name, is_available).await.map(drop)
}

/// Waits until something holds of an object, and gives it.
pub(crate) async fn becomes<K>(api: Api<K>, name: &str, holds: impl Fn(&K) -> bool) -> anyhow::Result<K>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let condition = |object: Option<&K>| object.is_some_and(&holds);
    let found = await_condition(api, name, condition).await;
    found?.with_context(|| format!("{name} is gone"))
}
