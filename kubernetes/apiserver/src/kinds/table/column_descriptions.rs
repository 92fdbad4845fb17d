//! The descriptions of columns, from the API's own documentation.

pub(super) const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a \
     client to request the generation of an appropriate name automatically. Name is primarily intended for creation \
     idempotence and configuration definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
pub(super) const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed \
     to be set in happens-before order across separate operations. Clients may not set this value. It is represented \
     in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
pub(super) const CONFIG_DATA: &str = "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values \
     with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the \
     keys in the BinaryData field, this is enforced during validation process.";
pub(super) const LEASE_HOLDER: &str = "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, \
     the holder identity must be equal to the elected LeaseCandidate.metadata.name field.";
pub(super) const POD_GATES: &str = "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers \
     are ready AND all conditions specified in the readiness gates have status equal to \"True\" More info: \
     https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates";
pub(super) const POD_IP: &str =
    "podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.";
pub(super) const POD_NODE: &str = "NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the \
     scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for \
     the lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a \
     specific node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename";
pub(super) const POD_NOMINATED: &str = "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right \
     away as preemption victims receive their graceful termination periods. This field does not guarantee that the \
     pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become \
     available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that is \
     created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is \
     scheduled.";
pub(super) const POD_READY: &str = "The aggregate readiness state of this pod for accepting traffic.";
pub(super) const POD_RESTARTS: &str = "The number of times the containers in this pod have been restarted and when the last container in this pod has \
     restarted.";
pub(super) const POD_STATUS: &str = "The aggregate status of the containers in this pod.";
pub(super) const SECRET_DATA: &str = "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The serialized \
     form of the secret data is a base64 encoded string, representing the arbitrary (possibly non-string) data value \
     here. Described in https://tools.ietf.org/html/rfc4648#section-4";
pub(super) const SECRET_TYPE: &str = "Used to facilitate programmatic handling of secret data. More info: \
     https://kubernetes.io/docs/concepts/configuration/secret/#secret-types";
pub(super) const SERVICE_CLUSTER_IP: &str = "clusterIP is the IP address of the service and is usually assigned randomly. If an address is specified \
     manually, is in-range (as per system configuration), and is not in use, it will be allocated to the service; \
     otherwise creation of the service will fail. This field may not be changed through updates unless the type field \
     is also being changed to ExternalName (which requires this field to be blank) or the type field is being \
     changed from ExternalName (in which case this field may optionally be specified, as describe above).  Valid \
     values are \"None\", empty string (\"\"), or a valid IP address. Setting this to \"None\" makes a \"headless \
     service\" (no virtual IP), which is useful when direct endpoint connections are preferred and proxying is not \
     required.  Only applies to types ClusterIP, NodePort, and LoadBalancer. If this field is specified when creating \
     a Service of type ExternalName, creation will fail. This field will be wiped when updating a Service to type \
     ExternalName. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies";
pub(super) const SERVICE_EXTERNAL_IP: &str = "externalIPs is a list of IP addresses for which nodes in the cluster will also accept traffic for this service.  \
     These IPs are not managed by Kubernetes.  The user is responsible for ensuring that traffic arrives at a node \
     with this IP.  A common example is external load-balancers that are not part of the Kubernetes system.";
pub(super) const SERVICE_PORTS: &str = "The list of ports that are exposed by this service. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies";
pub(super) const SERVICE_SELECTOR: &str = "Route service traffic to pods with label keys and values matching this selector. If empty or not present, the \
     service is assumed to have an external process managing its endpoints, which Kubernetes will not modify. Only \
     applies to types ClusterIP, NodePort, and LoadBalancer. Ignored if type is ExternalName. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/";
pub(super) const SERVICE_TYPE: &str = "type determines how the Service is exposed. Defaults to ClusterIP. Valid options are ExternalName, ClusterIP, \
     NodePort, and LoadBalancer. \"ClusterIP\" allocates a cluster-internal IP address for load-balancing to \
     endpoints. Endpoints are determined by the selector or if that is not specified, by manual construction of an \
     Endpoints object or EndpointSlice objects. If clusterIP is \"None\", no virtual IP is allocated and the \
     endpoints are published as a set of endpoints rather than a virtual IP. \"NodePort\" builds on ClusterIP and \
     allocates a port on every node which routes to the same endpoints as the clusterIP. \"LoadBalancer\" builds on \
     NodePort and creates an external load-balancer (if supported in the current cloud) which routes to the same \
     endpoints as the clusterIP. \"ExternalName\" aliases this service to the specified externalName. Several other \
     fields do not apply to ExternalName services. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types";
