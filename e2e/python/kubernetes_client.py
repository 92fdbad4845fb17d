"""Does with the Kubernetes client for Python what its documentation shows, and prints the names of what it has done.

Usage: kubernetes_client.py KUBECONFIG NAMESPACE

The namespace is made, and removed at the end. Whatever is not as it should be ends the script with an error.
"""

import json
import os
import sys
import tempfile
import threading

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

KUBECONFIG, NAMESPACE = sys.argv[1:]
GROUP = f"{NAMESPACE}.example.com"


def pod(name, labels=None):
    """A pod that fits no node."""
    container = client.V1Container(name="main", image="busybox:1", args=["sleep", "3600"])
    spec = client.V1PodSpec(containers=[container], node_selector={"no.such/node": "true"})
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels=labels), spec=spec)


def config_map(name, data, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


def refused(status, call, *args, **kwargs):
    """Calls what the server must refuse with this status, and gives the body of the refusal."""
    try:
        call(*args, **kwargs)
    except ApiException as error:
        assert error.status == status, f"{error.status} instead of {status}: {error.body}"
        return json.loads(error.body)
    raise AssertionError(f"{call} is not refused")


def rewritten(read, change, write):
    """Reads, changes and writes an object, again while somebody else is faster. Gives what was read, changed, and what was written."""
    for _ in range(1000):
        found = read()
        change(found)
        try:
            return found, write(found)
        except ApiException as error:
            assert error.status == 409, error.body
    raise AssertionError(f"{write} meets another writer each time")


def pods_are_made_read_changed_and_deleted(core):
    created = core.create_namespaced_pod(NAMESPACE, pod("first", {"app": "a"}))
    assert created.status.phase == "Pending" and created.metadata.uid
    assert created.metadata.creation_timestamp.tzinfo, "a time is a time"
    read = core.read_namespaced_pod("first", NAMESPACE)
    assert read.spec.containers[0].image_pull_policy == "IfNotPresent"
    read, replaced = rewritten(
        lambda: core.read_namespaced_pod("first", NAMESPACE),
        lambda found: found.metadata.labels.update(tier="front"),
        lambda found: core.replace_namespaced_pod("first", NAMESPACE, found))
    assert {"app": "a", "tier": "front"}.items() <= replaced.metadata.labels.items(), replaced.metadata.labels
    assert refused(409, core.replace_namespaced_pod, "first", NAMESPACE, read)["reason"] == "Conflict"
    patched = core.patch_namespaced_pod("first", NAMESPACE, {"metadata": {"annotations": {"note": "yes"}}})
    assert patched.metadata.annotations["note"] == "yes"
    assert [item.metadata.name for item in core.list_namespaced_pod(NAMESPACE, label_selector="app=a").items] == ["first"]
    assert any(item.metadata.name == "first" for item in core.list_pod_for_all_namespaces().items)
    assert not core.read_namespaced_pod_log("first", NAMESPACE), "it never ran"
    core.patch_namespaced_pod_status("first", NAMESPACE, {"status": {"message": "waits"}})
    assert core.read_namespaced_pod_status("first", NAMESPACE).status.message == "waits"
    core.delete_namespaced_pod("first", NAMESPACE, grace_period_seconds=0)
    assert refused(404, core.read_namespaced_pod, "first", NAMESPACE)["details"]["kind"] == "pods"


def services_config_maps_and_secrets_come_and_go(core):
    port = client.V1ServicePort(port=80, target_port="http")
    spec = client.V1ServiceSpec(selector={"app": "a"}, ports=[port])
    service = core.create_namespaced_service(NAMESPACE, client.V1Service(metadata={"name": "web"}, spec=spec))
    assert service.spec.type == "ClusterIP" and service.spec.cluster_ip
    service = core.patch_namespaced_service("web", NAMESPACE, {"spec": {"ports": [{"name": "web", "port": 80}]}})
    assert service.spec.ports[0].name == "web"
    secret = client.V1Secret(metadata={"name": "word"}, string_data={"word": "abc"})
    assert core.create_namespaced_secret(NAMESPACE, secret).data == {"word": "YWJj"}
    core.create_namespaced_config_map(NAMESPACE, config_map("settings", {"a": "1"}))
    changes = [{"op": "replace", "path": "/data/a", "value": "2"}, {"op": "add", "path": "/data/b", "value": "3"}]
    assert core.patch_namespaced_config_map("settings", NAMESPACE, changes).data == {"a": "2", "b": "3"}
    core.delete_collection_namespaced_config_map(NAMESPACE, field_selector="metadata.name=settings")
    refused(404, core.read_namespaced_config_map, "settings", NAMESPACE)


def mistakes_are_told(core):
    wrong = refused(422, core.create_namespaced_pod, NAMESPACE, pod("Not_A_Name"))
    assert wrong["reason"] == "Invalid" and wrong["details"]["causes"][0]["field"] == "metadata.name"
    core.create_namespaced_config_map(NAMESPACE, config_map("twice", {}))
    assert refused(409, core.create_namespaced_config_map, NAMESPACE, config_map("twice", {}))["reason"] == "AlreadyExists"
    refused(404, core.create_namespaced_config_map, "no-such-namespace", config_map("a", {}))
    core.create_namespaced_config_map(NAMESPACE, config_map("never", {}), dry_run="All")
    refused(404, core.read_namespaced_config_map, "never", NAMESPACE)


def long_lists_come_in_pages(core):
    for number in range(7):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{number}", {}, {"paged": "yes"}))
    names, sizes, token = [], [], None
    while True:
        page = core.list_namespaced_config_map(NAMESPACE, label_selector="paged=yes", limit=3, _continue=token)
        names += [item.metadata.name for item in page.items]
        sizes.append(len(page.items))
        token = page.metadata._continue
        if not token:
            break
    assert sizes == [3, 3, 1] and names == [f"page-{number}" for number in range(7)], (sizes, names)


def a_watch_tells_what_happens(core):
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def write():
        core.create_namespaced_config_map(NAMESPACE, config_map("watched", {"a": "1"}, {"seen": "yes"}))
        core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"a": "2"}})
        core.delete_namespaced_config_map("watched", NAMESPACE)

    writer = threading.Thread(target=write)
    writer.start()
    seen, watcher = [], watch.Watch()
    options = {"label_selector": "seen=yes", "resource_version": version, "timeout_seconds": 60}
    for event in watcher.stream(core.list_namespaced_config_map, NAMESPACE, **options):
        # What somebody else changed beside the data is no part of this.
        if event["type"] != "MODIFIED" or seen[-1][1] != event["object"].data:
            seen.append((event["type"], event["object"].data))
        if event["type"] == "DELETED":
            watcher.stop()
    writer.join()
    assert seen == [("ADDED", {"a": "1"}), ("MODIFIED", {"a": "2"}), ("DELETED", {"a": "2"})], seen


def deployments_are_scaled_and_restarted(apps, autoscaling):
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": "web"}), spec=pod("x").spec)
    spec = client.V1DeploymentSpec(replicas=3, selector={"matchLabels": {"app": "web"}}, template=template)
    deployment = client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    created = apps.create_namespaced_deployment(NAMESPACE, deployment)
    assert created.spec.strategy.rolling_update.max_surge == "25%" and created.metadata.generation == 1

    def with_other_image(found):
        found.spec.template.spec.containers[0].image = "busybox:2"

    # It holds a resourceVersion, and the Deployment's controller writes, too.
    read, patched = rewritten(
        lambda: apps.read_namespaced_deployment("web", NAMESPACE), with_other_image,
        lambda found: apps.patch_namespaced_deployment("web", NAMESPACE, found))
    assert patched.metadata.generation > read.metadata.generation, patched.metadata
    assert patched.spec.template.spec.containers[0].image == "busybox:2"
    restarted = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}
    assert apps.patch_namespaced_deployment("web", NAMESPACE, restarted).metadata.generation > patched.metadata.generation

    def with_five(scale):
        scale.spec.replicas = 5

    _, scaled = rewritten(
        lambda: apps.read_namespaced_deployment_scale("web", NAMESPACE), with_five,
        lambda scale: apps.replace_namespaced_deployment_scale("web", NAMESPACE, scale))
    assert scaled.spec.replicas == 5
    assert apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 4}}).spec.replicas == 4
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "spec": {"maxReplicas": 9, "scaleTargetRef": target}}
    made = autoscaling.create_namespaced_horizontal_pod_autoscaler(NAMESPACE, scaler)
    assert made.spec.metrics[0].resource.target.average_utilization == 80
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Foreground")


def jobs_and_networks_are_made(batch, networking, policy):
    template = {"spec": {"restartPolicy": "Never", "nodeSelector": {"no.such/node": "true"},
                         "containers": [{"name": "pi", "image": "perl"}]}}
    job = batch.create_namespaced_job(NAMESPACE, {"metadata": {"name": "pi"}, "spec": {"template": template}})
    assert job.spec.completions == 1 and job.spec.backoff_limit == 6
    daily = {"metadata": {"name": "daily"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}}
    assert batch.create_namespaced_cron_job(NAMESPACE, daily).spec.concurrency_policy == "Allow"
    backend = client.V1IngressBackend(service=client.V1IngressServiceBackend(name="web", port={"number": 80}))
    path = client.V1HTTPIngressPath(path="/", path_type="Prefix", backend=backend)
    rule = client.V1IngressRule(host="example.com", http=client.V1HTTPIngressRuleValue(paths=[path]))
    ingress = client.V1Ingress(metadata={"name": "web"}, spec=client.V1IngressSpec(rules=[rule]))
    assert networking.create_namespaced_ingress(NAMESPACE, ingress).spec.rules[0].host == "example.com"
    deny = client.V1NetworkPolicy(metadata={"name": "deny"}, spec=client.V1NetworkPolicySpec(pod_selector={}))
    assert networking.create_namespaced_network_policy(NAMESPACE, deny).spec.policy_types == ["Ingress"]
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}}
    assert policy.create_namespaced_pod_disruption_budget(NAMESPACE, budget).spec.min_available == "50%"


def roles_let_somebody_in(core, rbac, authorization):
    rule = client.V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])
    rbac.create_namespaced_role(NAMESPACE, client.V1Role(metadata={"name": "reader"}, rules=[rule]))
    subject = client.RbacV1Subject(kind="User", name="bob", api_group="rbac.authorization.k8s.io")
    to = client.V1RoleRef(kind="Role", name="reader", api_group="rbac.authorization.k8s.io")
    binding = client.V1RoleBinding(metadata={"name": "readers"}, subjects=[subject], role_ref=to)
    rbac.create_namespaced_role_binding(NAMESPACE, binding)

    def may(verb):
        attributes = client.V1ResourceAttributes(namespace=NAMESPACE, verb=verb, resource="pods")
        spec = client.V1SubjectAccessReviewSpec(user="bob", resource_attributes=attributes)
        review = client.V1SubjectAccessReview(spec=spec)
        return authorization.create_subject_access_review(review).status.allowed

    # The server learns of roles as others do: a moment later.
    wait(lambda: may("get"))
    assert not may("delete")
    core.create_namespaced_service_account(NAMESPACE, client.V1ServiceAccount(metadata={"name": "robot"}))
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = core.create_namespaced_service_account_token("robot", NAMESPACE, request).status.token
    settings = client.Configuration.get_default_copy()
    settings.cert_file = settings.key_file = None
    settings.api_key = {"authorization": f"Bearer {token}"}
    robot = client.ApiClient(settings)
    refusal = refused(403, client.CoreV1Api(robot).list_namespaced_pod, NAMESPACE)
    assert f"system:serviceaccount:{NAMESPACE}:robot" in refusal["message"]
    whoami = client.AuthenticationV1Api(robot).create_self_subject_review(client.V1SelfSubjectReview())
    assert "system:serviceaccounts" in whoami.status.user_info.groups


def a_lease_elects_a_leader(coordination):
    lease = client.V1Lease(metadata={"name": "plain"}, spec=client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15))
    assert coordination.create_namespaced_lease(NAMESPACE, lease).spec.holder_identity == "me"
    led, over = threading.Event(), threading.Event()

    class Lock(LeaseLock):
        """An election has no end of its own, and one that lasts longer than the interpreter makes that abort now and then."""

        def get(self, name, namespace):
            if over.is_set():
                sys.exit()
            return super().get(name, namespace)

    election = electionconfig.Config(
        Lock("leader", NAMESPACE, "one"), lease_duration=17, renew_deadline=15, retry_period=1,
        onstarted_leading=led.set, onstopped_leading=None)
    candidate = threading.Thread(target=leaderelection.LeaderElection(election).run)
    candidate.start()
    try:
        assert led.wait(60), "nobody leads"
        assert coordination.read_namespaced_lease("leader", NAMESPACE).spec.holder_identity == "one"
    finally:
        over.set()
        candidate.join()


def custom_objects_have_a_client(extensions, custom):
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"cronSpec": {"type": "string"}, "replicas": {"type": "integer", "minimum": 1}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    names = {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "shortNames": ["ct"]}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    extensions.create_custom_resource_definition({"metadata": {"name": f"crontabs.{GROUP}"}, "spec": spec})

    def established():
        definition = extensions.read_custom_resource_definition(f"crontabs.{GROUP}")
        return any(it.type == "Established" and it.status == "True" for it in definition.status.conditions or [])

    wait(established)
    kind = {"apiVersion": f"{GROUP}/v1", "kind": "CronTab"}
    place = (GROUP, "v1", NAMESPACE, "crontabs")
    body = {**kind, "metadata": {"name": "one"}, "spec": {"cronSpec": "* * * * */5", "replicas": 1}}
    assert custom.create_namespaced_custom_object(*place, body)["metadata"]["generation"] == 1
    assert custom.patch_namespaced_custom_object(*place, "one", {"spec": {"replicas": 2}})["spec"]["replicas"] == 2
    custom.patch_namespaced_custom_object_status(*place, "one", {"status": {"ready": True}})
    found = custom.get_namespaced_custom_object(*place, "one")
    assert found["status"] == {"ready": True} and found["metadata"]["generation"] == 2
    assert len(custom.list_namespaced_custom_object(*place)["items"]) == 1
    assert len(custom.list_cluster_custom_object(GROUP, "v1", "crontabs")["items"]) == 1
    refused(422, custom.patch_namespaced_custom_object, *place, "one", {"spec": {"replicas": 0}})
    events = watch.Watch().stream(custom.list_namespaced_custom_object, *place, timeout_seconds=60)
    assert next(events)["object"]["metadata"]["name"] == "one"
    custom.delete_namespaced_custom_object(*place, "one")
    refused(404, custom.get_namespaced_custom_object, *place, "one")


def the_dynamic_client_finds_every_kind(everything):
    services = everything.resources.get(api_version="v1", kind="Service")
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "frontend"},
                "spec": {"selector": {"app": "a"}, "ports": [{"port": 8080}]}}
    assert services.create(body=manifest, namespace=NAMESPACE).metadata.name == "frontend"
    manifest["spec"]["ports"] = [{"name": "new", "port": 8080}]
    assert services.patch(body=manifest, name="frontend", namespace=NAMESPACE).spec.ports[0].name == "new"
    unknown, strict = {**manifest, "sepc": {}}, [("fieldValidation", "Strict")]
    refusal = refused(400, services.create, body=unknown, namespace=NAMESPACE, query_params=strict)
    assert 'unknown field "sepc"' in refusal["message"], refusal
    services.delete(name="frontend", namespace=NAMESPACE)
    tabs = everything.resources.get(api_version=f"{GROUP}/v1", kind="CronTab")
    body = {"apiVersion": f"{GROUP}/v1", "kind": "CronTab", "metadata": {"name": "two"}, "spec": {"replicas": 2}}
    made = tabs.create(body=body, namespace=NAMESPACE).to_dict()
    made["spec"]["cronSpec"] = "@daily"
    assert tabs.replace(body=made, namespace=NAMESPACE).spec.cronSpec == "@daily"
    merge = "application/merge-patch+json"
    assert tabs.patch(body={"spec": {"replicas": 7}}, name="two", namespace=NAMESPACE, content_type=merge).spec.replicas == 7
    assert [item.metadata.name for item in tabs.get(namespace=NAMESPACE).items] == ["two"]
    first = next(tabs.watch(namespace=NAMESPACE, timeout=60))
    assert (first["type"], first["object"].metadata.name) == ("ADDED", "two")
    assert tabs.status.patch(body={"status": {"ready": True}}, name="two", namespace=NAMESPACE, content_type=merge).status.ready
    tabs.delete(name="two", namespace=NAMESPACE)
    try:
        tabs.get(name="two", namespace=NAMESPACE)
        raise AssertionError("the object still exists")
    except NotFoundError as error:
        assert error.status == 404


def whoever_applies_owns_fields(everything, core):
    maps = everything.resources.get(api_version="v1", kind="ConfigMap")

    def apply(manager, data, **options):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied", "namespace": NAMESPACE}, "data": data}
        return maps.server_side_apply(body=body, field_manager=manager, **options).to_dict()["data"]

    assert apply("one", {"a": "1", "b": "1"}) == {"a": "1", "b": "1"}
    assert apply("two", {"c": "1"}) == {"a": "1", "b": "1", "c": "1"}
    try:
        apply("two", {"a": "2", "c": "1"})
        raise AssertionError("the request was not refused")
    except ConflictError as conflict:
        causes = json.loads(conflict.body)["details"]["causes"]
        assert [cause["field"] for cause in causes] == [".data.a"], causes
    assert apply("two", {"a": "2", "c": "1"}, force_conflicts=True)["a"] == "2"
    assert apply("one", {"b": "1"}) == {"a": "2", "b": "1", "c": "1"}
    assert apply("one", {"x": "1"}) == {"a": "2", "c": "1", "x": "1"}
    managers = core.read_namespaced_config_map("applied", NAMESPACE).metadata.managed_fields
    assert {entry.manager for entry in managers if entry.operation == "Apply"} == {"one", "two"}


def files_are_made_into_objects(api):
    documents = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-file"}, "data": {"a": "1"}},
        {"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "from-file"}}]},
    ]
    utils.create_from_yaml(api, yaml_objects=documents, namespace=NAMESPACE)
    core = client.CoreV1Api(api)
    assert core.read_namespaced_config_map("from-file", NAMESPACE).data == {"a": "1"}
    assert core.read_namespaced_service_account("from-file", NAMESPACE).metadata.uid


def what_there_is_is_told(api):
    assert client.VersionApi(api).get_code().major == "1"
    assert "v1" in client.CoreApi(api).get_api_versions().versions
    groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
    assert {"apps", "batch", GROUP} <= groups, groups
    names = {resource.name for resource in client.AppsV1Api(api).get_api_resources().resources}
    assert {"deployments", "deployments/scale", "deployments/status"} <= names, names


def wait(condition):
    """Until it holds; only a broken server needs a minute."""
    pause = threading.Event()
    for _ in range(60 * 50):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("timed out while waiting")


def main():
    with tempfile.TemporaryDirectory() as folder:
        do_all(folder)


def do_all(folder):
    config.load_kube_config(KUBECONFIG)
    api = client.ApiClient()
    core = client.CoreV1Api(api)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    extensions, custom = client.ApiextensionsV1Api(api), client.CustomObjectsApi(api)
    # What kinds there are is kept in a file: by default in one for each port, where a server that was there before has left its own.
    everything = dynamic.DynamicClient(api, cache_file=os.path.join(folder, "kinds.json"))
    steps = [
        (pods_are_made_read_changed_and_deleted, [core]),
        (services_config_maps_and_secrets_come_and_go, [core]),
        (mistakes_are_told, [core]),
        (long_lists_come_in_pages, [core]),
        (a_watch_tells_what_happens, [core]),
        (deployments_are_scaled_and_restarted, [client.AppsV1Api(api), client.AutoscalingV2Api(api)]),
        (jobs_and_networks_are_made, [client.BatchV1Api(api), client.NetworkingV1Api(api), client.PolicyV1Api(api)]),
        (roles_let_somebody_in, [core, client.RbacAuthorizationV1Api(api), client.AuthorizationV1Api(api)]),
        (a_lease_elects_a_leader, [client.CoordinationV1Api(api)]),
        (custom_objects_have_a_client, [extensions, custom]),
        (the_dynamic_client_finds_every_kind, [everything]),
        (whoever_applies_owns_fields, [everything, core]),
        (files_are_made_into_objects, [api]),
        (what_there_is_is_told, [api]),
    ]
    done = []
    try:
        for step, clients in steps:
            step(*clients)
            done.append(step.__name__)
    finally:
        core.delete_namespace(NAMESPACE)
        if "custom_objects_have_a_client" in done:
            extensions.delete_custom_resource_definition(f"crontabs.{GROUP}")
    print(json.dumps(done))


main()
