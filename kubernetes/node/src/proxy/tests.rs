use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::{
    core::v1::{Event, Node},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};

use super::*;
use crate::addresses::AddressBlock;

/// A cluster's addresses and a proxy; only the test writes objects.
struct World {
    block: AddressBlock,
    views: InformerSet,
    tasks: JoinSet<()>,
    version: u64,
}

fn nowhere() -> Client {
    Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            block: AddressBlock::acquire(None).unwrap(),
            views: InformerSet::default(),
            tasks: JoinSet::new(),
            version: 0,
        };
        ServiceProxy::start(&world.views, EventRecorder::new(nowhere(), "kube-proxy", None), &mut world.tasks);
        world
    }

    /// The address of a Service.
    fn ip(&self, number: u8) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.block.services().0) + u32::from(number))
    }

    fn metadata(&mut self, name: &str) -> Value {
        self.version += 1;
        json!({ "name": name, "namespace": "here", "uid": name, "resourceVersion": self.version.to_string() })
    }

    fn service(&mut self, name: &str, spec: Value) -> Service {
        let service = json!({ "metadata": self.metadata(name), "spec": spec });
        let service: Service = serde_json::from_value(service).unwrap();
        self.views.services.record_write(service.clone());
        service
    }

    fn slice(&mut self, service: &str, at: &[SocketAddr]) {
        let mut metadata = self.metadata(&format!("{service}-1"));
        metadata["labels"] = json!({ "kubernetes.io/service-name": service });
        let endpoints: Vec<Value> = at.iter().map(|at| json!({ "addresses": [at.ip()] })).collect();
        let port = at.first().map_or(1, SocketAddr::port);
        let ports = json!([{ "name": "", "port": port }]);
        let slice = json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        self.views.endpoint_slices.record_write(slice);
    }

    /// Pods that respond with their own address, all on the same port.
    async fn pods<const N: usize>(&mut self) -> [SocketAddr; N] {
        let range = self.block.node(0).unwrap();
        let mut at: Vec<SocketAddr> = Vec::new();
        let mut leases = Vec::new();
        while at.len() < N {
            let lease = range.allocate().unwrap();
            let port = at.first().map_or(0, SocketAddr::port);
            let listener = TcpListener::bind((lease.ip(), port)).await.unwrap();
            at.push(listener.local_addr().unwrap());
            leases.push(lease);
            self.tasks.spawn(async move {
                let me = listener.local_addr().unwrap().ip().to_string();
                while let Ok((mut stream, _)) = listener.accept().await {
                    stream.write_all(me.as_bytes()).await.unwrap();
                }
            });
        }
        self.tasks.spawn(async move {
            let _held = leases;
            std::future::pending().await
        });
        at.try_into().unwrap()
    }
}

/// The address of the pod that responds.
async fn ask(at: SocketAddr) -> io::Result<IpAddr> {
    let mut answer = String::new();
    TcpStream::connect(at).await?.read_to_string(&mut answer).await?;
    answer.parse().map_err(io::Error::other)
}

/// Asks until a condition holds.
async fn until(at: SocketAddr, holds: impl Fn(&io::Result<IpAddr>) -> bool) {
    while !holds(&ask(at).await) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn refused(answer: &io::Result<IpAddr>) -> bool {
    answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Any port is free: the addresses of Services belong to this cluster.
const PORT: u16 = 8080;

#[tokio::test]
async fn connections_go_to_each_endpoint_in_turn() {
    let mut world = World::new();
    let pods = world.pods::<3>().await;
    let at = SocketAddr::new(world.ip(5).into(), PORT);
    world.service("web", json!({ "clusterIP": at.ip(), "ports": [{ "port": PORT }] }));
    world.slice("web", &pods);
    until(at, Result::is_ok).await;
    let mut seen = HashMap::new();
    for _ in 0..30 {
        *seen.entry(ask(at).await.unwrap()).or_insert(0) += 1;
    }
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [10, 10, 10]);
}

#[tokio::test]
async fn backend_sees_address_of_client() {
    let mut world = World::new();
    let range = world.block.node(0).unwrap();
    let (server, client) = (range.allocate().unwrap(), range.allocate().unwrap());
    let listener = TcpListener::bind((server.ip(), 0)).await.unwrap();
    let at = SocketAddr::new(world.ip(5).into(), PORT);
    world.service("web", json!({ "clusterIP": at.ip(), "ports": [{ "port": PORT }] }));
    world.slice("web", &[listener.local_addr().unwrap()]);
    while TcpStream::connect(at).await.is_err() {
        tokio::task::yield_now().await;
    }
    let (_, unbound) = listener.accept().await.unwrap();
    assert_eq!(unbound.ip(), Ipv4Addr::LOCALHOST, "a client that binds no address has the machine's");
    for _ in 0..3 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((client.ip(), 0).into()).unwrap();
        let _connection = socket.connect(at).await.unwrap();
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(peer.ip(), client.ip());
    }
}

#[tokio::test]
async fn a_service_without_endpoints_refuses() {
    let mut world = World::new();
    let [pod] = world.pods::<1>().await;
    let at = SocketAddr::new(world.ip(5).into(), PORT);
    world.service("web", json!({ "clusterIP": at.ip(), "ports": [{ "port": PORT }] }));
    // Services are processed in the order in which they were added: when the second is served, so is the first.
    let second = SocketAddr::new(world.ip(6).into(), PORT);
    world.service("second", json!({ "clusterIP": second.ip(), "ports": [{ "port": PORT }] }));
    world.slice("second", &[pod]);
    until(second, Result::is_ok).await;
    assert!(refused(&ask(at).await));
    // No other process can bind the address.
    assert_eq!(TcpSocket::new_v4().unwrap().bind(at).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    for _ in 0..5 {
        world.slice("web", &[pod]);
        until(at, |answer| answer.as_ref().is_ok_and(|ip| *ip == pod.ip())).await;
        world.slice("web", &[]);
        until(at, refused).await;
    }
}

#[tokio::test]
async fn an_endpoint_that_refuses_is_passed_over() {
    let mut world = World::new();
    let [pod] = world.pods::<1>().await;
    let gone = SocketAddr::new(world.ip(200).into(), pod.port());
    let at = SocketAddr::new(world.ip(5).into(), PORT);
    world.service("web", json!({ "clusterIP": at.ip(), "ports": [{ "port": PORT }] }));
    world.slice("web", &[gone, pod]);
    until(at, Result::is_ok).await;
    for _ in 0..4 {
        assert_eq!(ask(at).await.unwrap(), pod.ip());
    }
    world.slice("web", &[gone]);
    until(at, |answer| answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)).await;
}

#[tokio::test]
async fn ports_of_nodes_lead_to_the_service_too() {
    let mut world = World::new();
    let [pod] = world.pods::<1>().await;
    // All clusters share 127.0.0.1. Neither the kernel nor API servers assign ports of this range.
    let free = fastrand::u16(20_000..30_000);
    let spec = json!({ "type": "NodePort", "clusterIP": world.ip(5), "ports": [{ "port": PORT, "nodePort": free }] });
    world.service("web", spec);
    world.slice("web", &[pod]);
    until((Ipv4Addr::LOCALHOST, free).into(), Result::is_ok).await;
    let address = world.block.node(0).unwrap().address();
    let node = json!({
        "metadata": { "name": "node-0", "resourceVersion": "1" },
        "status": { "addresses": [{ "type": "InternalIP", "address": address }] },
    });
    let node: Node = serde_json::from_value(node).unwrap();
    let node = world.views.nodes.record_write(node);
    until((address, free).into(), Result::is_ok).await;
    world.views.nodes.remove(&node);
    until((address, free).into(), refused).await;
}

#[tokio::test]
async fn an_address_moves_from_one_service_to_another() {
    let mut world = World::new();
    // Without the proxy's own worker: this test syncs the Services itself.
    world.tasks.shutdown().await;
    let proxy = ServiceProxy::new(&world.views, EventRecorder::new(nowhere(), "kube-proxy", None));
    let pods = world.pods::<2>().await;
    let at = SocketAddr::new(world.ip(5).into(), PORT);
    let spec = json!({ "clusterIP": at.ip(), "ports": [{ "port": PORT }] });
    let old = world.service("old", spec.clone());
    let new = world.service("new", spec);
    world.slice("old", &[pods[0]]);
    world.slice("new", &[pods[1]]);
    assert_eq!(proxy.sync_service(&NamespacedKey::from_object(&old)), None);
    assert_eq!(proxy.sync_service(&NamespacedKey::from_object(&new)), Some(ADDRESS_RETRY_INTERVAL));
    assert_eq!(ask(at).await.unwrap(), pods[0].ip());
    world.views.services.remove(&old);
    assert_eq!(proxy.sync_service(&NamespacedKey::from_object(&old)), None);
    // A Service that waited for the address is processed again at once.
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    world.tasks.spawn(proxy.queue.clone().run_workers("test", 1, move |key| {
        told.send(key).unwrap();
        async { Ok(None) }
    }));
    assert_eq!(heard.recv().await, Some(NamespacedKey::from_object(&new)));
    assert_eq!(proxy.sync_service(&NamespacedKey::from_object(&new)), None);
    assert_eq!(ask(at).await.unwrap(), pods[1].ip());
}

#[tokio::test]
async fn a_connection_outlives_its_service_but_not_the_proxy() {
    let mut world = World::new();
    let lease = world.block.node(0).unwrap().allocate().unwrap();
    let pod = TcpListener::bind((lease.ip(), 0)).await.unwrap();
    let at = SocketAddr::new(world.ip(5).into(), PORT);
    let service = world.service("web", json!({ "clusterIP": at.ip(), "ports": [{ "port": PORT }] }));
    world.slice("web", &[pod.local_addr().unwrap()]);
    let mut client = loop {
        match TcpStream::connect(at).await {
            Ok(client) => break client,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let (mut server, _) = pod.accept().await.unwrap();
    world.views.services.remove(&service);
    while TcpStream::connect(at).await.is_ok() {
        tokio::task::yield_now().await;
    }
    client.write_all(b"still here").await.unwrap();
    let mut heard = [0; 10];
    server.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"still here");
    world.tasks.shutdown().await;
    assert!(matches!(client.read(&mut heard).await, Ok(0) | Err(_)));
    assert!(matches!(server.read(&mut heard).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn what_cannot_be_served_is_an_event() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = server.client().unwrap();
    let mut world = World::new();
    world.tasks.shutdown().await;
    world.views.start_all(&client, &mut world.tasks).await;
    ServiceProxy::start(&world.views, EventRecorder::new(client.clone(), "kube-proxy", None), &mut world.tasks);
    // An address outside of the loopback network cannot be bound.
    let service = json!({
        "metadata": { "name": "web" },
        "spec": { "ports": [{ "name": "http", "port": 8080 }, { "name": "dns", "port": 53, "protocol": "UDP" }] },
    });
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let made = services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let address = made.spec.unwrap().cluster_ip.unwrap();
    let events: Api<Event> = Api::default_namespaced(client);
    let notes = loop {
        let list = events.list(&ListParams::default().fields("involvedObject.name=web")).await.unwrap();
        let mut notes: Vec<_> = list.into_iter().filter_map(|event| event.message).collect();
        if notes.len() == 2 {
            notes.sort();
            break notes;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let expected = format!(
        "Cannot listen on {address}:8080 for port http: it is not an address of this machine; Services of this cluster have \
         addresses in 127.0.0.0/8"
    );
    assert_eq!(notes, [expected, "Port dns is not served: this cluster forwards TCP, and not UDP".to_owned()]);
}

#[test]
fn it_is_said_what_can_be_done() {
    let denied = bind_error_message(&io::Error::from(io::ErrorKind::PermissionDenied));
    assert!(denied.contains("above 1023"), "{denied}");
    let in_use = bind_error_message(&io::Error::from(io::ErrorKind::AddrInUse));
    assert!(in_use.contains("0.0.0.0"), "{in_use}");
}
