//! What the path of a container's log says about the container.

use std::path::Path;

/// A container, as the kubelet names it in the path of its log: `NAMESPACE_POD_UID/CONTAINER/RESTARTS.log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodPath<'a> {
    pub(super) namespace: &'a str,
    pub(super) pod: &'a str,
    pub(super) uid: &'a str,
    pub(super) container: &'a str,
    pub(super) restarts: &'a str,
}

impl<'a> PodPath<'a> {
    /// Reads the path of a live file. Names of namespaces and pods have no `_`, by which they are separated.
    pub(super) fn parse(path: &'a Path) -> Option<Self> {
        let file = path.file_name()?.to_str()?;
        let (restarts, _) = file.split_once(".log")?;
        let directory = path.parent()?;
        let container = directory.file_name()?.to_str()?;
        let pod = directory.parent()?.file_name()?.to_str()?;
        let mut names = pod.splitn(3, '_');
        let (namespace, pod, uid) = (names.next()?, names.next()?, names.next()?);
        let is_number = !restarts.is_empty() && restarts.bytes().all(|byte| byte.is_ascii_digit());
        let has_names = [namespace, pod, uid, container].iter().all(|name| !name.is_empty());
        (is_number && has_names).then_some(Self { namespace, pod, uid, container, restarts })
    }

    /// The attributes of its resource, as the operator `container` names them.
    pub(super) fn resource_attributes(&self) -> [(&'static str, &'a str); 5] {
        [
            ("k8s.container.name", self.container),
            ("k8s.container.restart_count", self.restarts),
            ("k8s.namespace.name", self.namespace),
            ("k8s.pod.name", self.pod),
            ("k8s.pod.uid", self.uid),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_container_names_namespace_pod_and_container() {
        let path = Path::new("/var/log/pods/kube-system_etcd-node_38af2f3d/etcd.main/12.log");
        let names = ["kube-system", "etcd-node", "38af2f3d", "etcd.main", "12"];
        let found = PodPath::parse(path).unwrap();
        assert_eq!([found.namespace, found.pod, found.uid, found.container, found.restarts], names);
    }

    #[test]
    fn other_paths_name_no_container() {
        for path in ["0.log", "/a/b/0.log", "/a_b/c/0.log", "/a_b_c/d/x.log", "/a__c/d/0.log", "/a_b_c/d/0.txt", "/"] {
            assert_eq!(PodPath::parse(Path::new(path)), None, "{path}");
        }
    }
}
