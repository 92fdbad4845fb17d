use kube::{api::DeleteParams, runtime::wait::await_condition};

use super::*;
use crate::testing::TestCluster;

async fn world() -> TestCluster {
    let mut world = TestCluster::new().await;
    start(&world.client, &world.informers, "the authority".to_owned(), &mut world.tasks);
    world
}

async fn comes(client: &Client, namespace: &str, but_not: Option<String>) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let another = |account: Option<&ServiceAccount>| account.is_some_and(|account| account.metadata.uid != but_not);
    await_condition(accounts, DEFAULT_SERVICE_ACCOUNT, another).await.unwrap().unwrap().metadata.uid.unwrap()
}

async fn says(client: &Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let right = |map: Option<&ConfigMap>| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data.len() == 1 && data.get("ca.crt").is_some_and(|text| text == "the authority"))
    };
    await_condition(maps, ROOT_CA_CONFIG_MAP, right).await.unwrap();
}

#[tokio::test]
async fn every_namespace_has_an_account_and_the_authority() {
    let world = world().await;
    let new: Namespace = parse_object(json!({ "metadata": { "name": "new" } })).unwrap();
    Api::all(world.client.clone()).create(&PostParams::default(), &new).await.unwrap();
    for namespace in ["default", "kube-system", "new"] {
        comes(&world.client, namespace, None).await;
        says(&world.client, namespace).await;
    }
}

#[tokio::test]
async fn what_is_deleted_or_changed_comes_back() {
    let world = world().await;
    let uid = comes(&world.client, "default", None).await;
    says(&world.client, "default").await;
    world.delete::<ServiceAccount>(DEFAULT_SERVICE_ACCOUNT).await;
    comes(&world.client, "default", Some(uid)).await;
    world.patch::<ConfigMap>(ROOT_CA_CONFIG_MAP, json!({ "data": { "ca.crt": "another", "more": "of it" } })).await;
    says(&world.client, "default").await;
    world.delete::<ConfigMap>(ROOT_CA_CONFIG_MAP).await;
    says(&world.client, "default").await;
}

#[tokio::test]
async fn a_namespace_can_go() {
    let world = world().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let new: Namespace = parse_object(json!({ "metadata": { "name": "new" } })).unwrap();
    namespaces.create(&PostParams::default(), &new).await.unwrap();
    comes(&world.client, "new", None).await;
    namespaces.delete("new", &DeleteParams::default()).await.unwrap();
    await_condition(namespaces, "new", |namespace: Option<&Namespace>| namespace.is_none()).await.unwrap();
}
