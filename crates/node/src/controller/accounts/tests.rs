use kube::{
    api::{DeleteParams, Patch, PatchParams},
    runtime::wait::await_condition,
};
use kubewake_apiserver::server::{ApiServer, Options};

use super::*;

async fn world() -> (ApiServer, Client, JoinSet<()>) {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let (client, views, mut tasks) = (server.client().unwrap(), Views::default(), JoinSet::new());
    views.follow(&client, &mut tasks).await;
    start(&client, &views, "the authority".to_owned(), &mut tasks);
    (server, client, tasks)
}

async fn comes(client: &Client, namespace: &str, but_not: Option<String>) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let another = |account: Option<&ServiceAccount>| account.is_some_and(|account| account.metadata.uid != but_not);
    await_condition(accounts, ACCOUNT, another).await.unwrap().unwrap().metadata.uid.unwrap()
}

async fn says(client: &Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let right = |map: Option<&ConfigMap>| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data.len() == 1 && data.get("ca.crt").is_some_and(|text| text == "the authority"))
    };
    await_condition(maps, AUTHORITY, right).await.unwrap();
}

#[tokio::test]
async fn every_namespace_has_an_account_and_the_authority() {
    let (_server, client, _tasks) = world().await;
    let new: Namespace = read(json!({ "metadata": { "name": "new" } })).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &new).await.unwrap();
    for namespace in ["default", "kube-system", "new"] {
        comes(&client, namespace, None).await;
        says(&client, namespace).await;
    }
}

#[tokio::test]
async fn what_is_deleted_or_changed_comes_back() {
    let (_server, client, _tasks) = world().await;
    let uid = comes(&client, "default", None).await;
    says(&client, "default").await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    accounts.delete(ACCOUNT, &DeleteParams::default()).await.unwrap();
    comes(&client, "default", Some(uid)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let other = Patch::Merge(json!({ "data": { "ca.crt": "another", "more": "of it" } }));
    maps.patch(AUTHORITY, &PatchParams::default(), &other).await.unwrap();
    says(&client, "default").await;
    maps.delete(AUTHORITY, &DeleteParams::default()).await.unwrap();
    says(&client, "default").await;
}

#[tokio::test]
async fn a_namespace_can_go() {
    let (_server, client, _tasks) = world().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let new: Namespace = read(json!({ "metadata": { "name": "new" } })).unwrap();
    namespaces.create(&PostParams::default(), &new).await.unwrap();
    comes(&client, "new", None).await;
    namespaces.delete("new", &DeleteParams::default()).await.unwrap();
    await_condition(namespaces, "new", |namespace: Option<&Namespace>| namespace.is_none()).await.unwrap();
}
