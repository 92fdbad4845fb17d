//! Applies the objects of manifests as `kubectl apply --server-side` does, and waits for them.

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
use kubewake_trail::error_chain;
use serde_json::{Value, json};
use tokio::time::Instant;

/// New CRDs and webhooks take effect with a short delay; only a broken system exceeds this.
const WRITE_TIMEOUT: Duration = Duration::from_secs(90);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Applies objects as one field manager.
pub(crate) struct ManifestApplier {
    client: Client,
    manager: &'static str,
    kinds: HashMap<(String, String), (ApiResource, ApiCapabilities)>,
}

/// The name of an object in messages and paths.
struct ObjectReference<'a> {
    version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> ObjectReference<'a> {
    fn from_object(object: &'a Value) -> anyhow::Result<Self> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let has = |path: &str| text(path).with_context(|| format!("an object in the manifest has no {path}"));
        Ok(Self {
            version: has("/apiVersion")?,
            kind: has("/kind")?,
            namespace: text("/metadata/namespace"),
            name: has("/metadata/name")?,
        })
    }
}

impl ManifestApplier {
    /// `manager` becomes the owner of all applied fields.
    pub(crate) fn new(client: Client, manager: &'static str) -> Self {
        Self { client, manager, kinds: HashMap::new() }
    }

    /// Applies the objects in order.
    pub(crate) async fn apply_all(&mut self, objects: &[Value]) -> anyhow::Result<()> {
        for object in objects {
            self.apply(object).await?;
        }
        Ok(())
    }

    /// Applies an object, taking over conflicting fields, and returns the result.
    pub(crate) async fn apply(&mut self, object: &Value) -> anyhow::Result<DynamicObject> {
        self.patch_with_retry(object, PatchParams::apply(self.manager).force()).await
    }

    /// Returns the result of a dry run.
    pub(crate) async fn dry_run(&mut self, object: &Value) -> anyhow::Result<DynamicObject> {
        self.patch_with_retry(object, PatchParams::apply(self.manager).force().dry_run()).await
    }

    /// Reads the object, if it exists.
    pub(crate) async fn get(&mut self, object: &Value) -> anyhow::Result<Option<DynamicObject>> {
        let name = ObjectReference::from_object(object)?;
        let found = self.api_for_reference(&name).await?.get_opt(name.name).await;
        found.map_err(|error| anyhow!("failed to get {} {}: {}", name.kind, name.name, error_chain(&error)))
    }

    /// Retries errors that are transient, such as those of a registered webhook that cannot be reached yet, or
    /// not again.
    async fn patch_with_retry(&mut self, object: &Value, how: PatchParams) -> anyhow::Result<DynamicObject> {
        let name = ObjectReference::from_object(object)?;
        let api = self.api_for_reference(&name).await?;
        let deadline = Instant::now() + WRITE_TIMEOUT;
        loop {
            match api.patch(name.name, &how, &Patch::Apply(object)).await {
                Ok(applied) => return Ok(applied),
                Err(kube::Error::Api(status)) if status.code >= 500 && Instant::now() < deadline => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                Err(error) => {
                    return Err(anyhow!("failed to apply {} {}: {}", name.kind, name.name, error_chain(&error)));
                }
            }
        }
    }

    /// The API of an object's kind and namespace.
    pub(crate) async fn api_for_object(&mut self, object: &Value) -> anyhow::Result<Api<DynamicObject>> {
        self.api_for_reference(&ObjectReference::from_object(object)?).await
    }

    async fn api_for_reference(&mut self, name: &ObjectReference<'_>) -> anyhow::Result<Api<DynamicObject>> {
        let key = (name.version.to_owned(), name.kind.to_owned());
        let found = match self.kinds.get(&key) {
            Some(found) => found.clone(),
            None => {
                let found = self.discover_resource(name).await?;
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

    async fn discover_resource(&self, name: &ObjectReference<'_>) -> anyhow::Result<(ApiResource, ApiCapabilities)> {
        let (group, version) = name.version.rsplit_once('/').unwrap_or(("", name.version));
        let wanted = GroupVersionKind::gvk(group, version, name.kind);
        let deadline = Instant::now() + WRITE_TIMEOUT;
        loop {
            match discovery::pinned_kind(&self.client, &wanted).await {
                Ok(found) => return Ok(found),
                Err(error) if Instant::now() > deadline => {
                    return Err(anyhow!("failed to discover kind {}: {}", name.kind, error_chain(&error)));
                }
                Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
    }
}

pub(crate) fn parse_manifest(manifest: &str) -> anyhow::Result<Vec<Value>> {
    serde_saphyr::from_multiple(manifest).context("failed to parse a built-in manifest")
}

/// The Deployment of this name among the objects.
pub(crate) fn find_deployment<'a>(objects: &'a mut [Value], name: &str) -> anyhow::Result<&'a mut Value> {
    let is_it = |object: &&mut Value| {
        ObjectReference::from_object(object).is_ok_and(|it| it.kind == "Deployment" && it.name == name)
    };
    objects.iter_mut().find(is_it).with_context(|| format!("the manifest has no Deployment {name}"))
}

/// Sets a variable of a Deployment's first container.
pub(crate) fn set_env_variable(deployment: &mut Value, name: &str, value: &str) {
    let Some(container) = deployment.pointer_mut("/spec/template/spec/containers/0").and_then(Value::as_object_mut)
    else {
        return;
    };
    if let Value::Array(variables) = container.entry("env").or_insert_with(|| json!([])) {
        variables.retain(|variable| variable.get("name").and_then(Value::as_str) != Some(name));
        variables.push(json!({"name": name, "value": value}));
    }
}

/// Waits until a Deployment is available with its current spec.
pub(crate) async fn wait_until_available(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let is_available = |deployment: &Deployment| {
        let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
        let wanted = spec.replicas.unwrap_or(1);
        status.observed_generation >= deployment.metadata.generation
            && status.available_replicas.unwrap_or(0) >= wanted
            && status.updated_replicas.unwrap_or(0) >= wanted
    };
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    wait_until(api, name, is_available).await.map(drop)
}

/// Waits until an object satisfies a condition, and returns the object.
pub(crate) async fn wait_until<K>(api: Api<K>, name: &str, holds: impl Fn(&K) -> bool) -> anyhow::Result<K>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let condition = |object: Option<&K>| object.is_some_and(&holds);
    let found = await_condition(api, name, condition).await;
    found?.with_context(|| format!("{name} was deleted"))
}
