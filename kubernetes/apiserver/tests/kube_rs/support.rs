//! A server with a client, and a custom resource.

use std::{collections::BTreeMap, fmt::Debug, future::Future, time::Duration};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, KubeSchema,
    api::{ObjectMeta, PostParams},
    core::Status,
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde::{Deserialize, Serialize};

/// Longer than any step takes on the slowest machine: a test that waits so long has found an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// A garden has beds. Its status has their number.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, KubeSchema, PartialEq)]
#[kube(group = "example.com", version = "v1", kind = "Garden", namespaced, status = "GardenStatus", derive = "Default")]
#[kube(shortname = "gd", scale(spec_replicas_path = ".spec.beds", status_replicas_path = ".status.beds"))]
#[serde(rename_all = "camelCase")]
pub struct GardenSpec {
    #[x_kube(validation = ("self >= 0", "a garden has no negative beds"))]
    pub beds: i32,
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, KubeSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GardenStatus {
    #[serde(default)]
    pub beds: i32,
}

/// A server and its administrator.
pub struct World {
    pub server: ApiServer,
    pub client: Client,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        let server = ApiServer::start(options).await.unwrap();
        let client = server.client().unwrap();
        Self { server, client }
    }

    /// A server that serves gardens.
    pub async fn with_gardens() -> Self {
        let world = Self::new().await;
        define_gardens(&world.client).await;
        world
    }

    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.client.clone())
    }

    pub fn gardens(&self) -> Api<Garden> {
        Api::default_namespaced(self.client.clone())
    }

    pub async fn namespace(&self, name: &str) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = Namespace { metadata: named(name), ..Namespace::default() };
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
}

pub async fn define_gardens(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &Garden::crd()).await.unwrap();
    let name = Garden::crd_name();
    soon(await_condition(definitions, name, is_crd_established())).await.unwrap();
}

pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

pub fn config_map(name: &str, value: &str) -> ConfigMap {
    let data = BTreeMap::from([("key".to_owned(), value.to_owned())]);
    ConfigMap { metadata: named(name), data: Some(data), ..ConfigMap::default() }
}

pub fn value_of(config_map: &ConfigMap) -> &str {
    &config_map.data.as_ref().unwrap()["key"]
}

pub fn garden(name: &str, beds: i32) -> Garden {
    Garden::new(name, GardenSpec { beds, notes: Vec::new() })
}

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("this should have happened by now")
}

/// Polls until there is a result. Each poll waits for the server, so that this is no busy loop.
pub async fn until<T, F: Future<Output = Option<T>>>(ask: impl Fn() -> F) -> T {
    soon(async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

pub fn refused<T: Debug>(answer: Result<T, kube::Error>) -> Status {
    match answer.unwrap_err() {
        kube::Error::Api(status) => *status,
        other => panic!("{other:?} is no refusal"),
    }
}
