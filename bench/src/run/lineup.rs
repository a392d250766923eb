//! The products in a test. All run at the same time; an idle product costs nothing.

use std::ffi::OsString;
use std::net::SocketAddr;

use super::bed::Bed;
use super::certificates::Certificates;
use super::crs::Crs;
use super::process::{Launch, Server, output_of};
use super::products::{Balance, Feature, Front, InstalledProduct, Layer, Place, Service};
use super::store::Store;
use super::{RunError, host};

/// A running product.
#[derive(Debug)]
pub struct Runner {
    /// The product.
    pub found: InstalledProduct,
    /// The product's process.
    pub server: Server,
    /// Addresses of the virtual servers.
    pub listen: Vec<SocketAddr>,
    /// Number of worker threads or processes.
    pub workers: usize,
}

/// The configuration that a test wants from its products.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// Name of the configuration folder: the test, or a part of it.
    pub name: &'a str,
    /// Number of virtual servers.
    pub virtual_servers: usize,
    /// Concurrent clients.
    pub clients: usize,
    /// Length of the requested objects; the products' buffers are sized for it.
    pub object_bytes: u64,
    /// The yardstick that takes part.
    pub yardstick: Option<&'static str>,
    /// The pool; `None`: all servers of the origin.
    pub members: Option<&'a [SocketAddr]>,
    /// The balancing of the pool.
    pub balance: Balance,
    /// Further features.
    pub feature: Feature,
    /// The layer at which the products work.
    pub layer: Layer,
    /// The protocol toward clients.
    pub front: Front,
    /// Further command prefix of a product, in addition to the bed's: a tool that runs the product.
    pub under: &'a [OsString],
}

/// The result of starting a product.
#[derive(Debug)]
pub enum Start {
    /// The product serves.
    Serves(Box<Runner>),
    /// The product does not support the scene; the reason.
    Unable(String),
}

/// Writes a product's configuration, starts it and waits until it serves.
pub fn start(
    found: &InstalledProduct,
    scene: Scene<'_>,
    (bed, store, certificates): (&Bed, &Store, &Certificates),
    members: &[SocketAddr],
    taken: &[u16],
) -> Result<Start, RunError> {
    let definition = found.definition;
    let descriptors_max = host::descriptors_max();
    let crs = match rules_of(scene.feature) {
        Ok(crs) => crs,
        Err(reason) => return Ok(Start::Unable(reason)),
    };
    let service = Service {
        listen: bed.virtual_servers(scene.virtual_servers, taken)?,
        members: members.to_vec(),
        workers: Service::workers_for(scene.clients, bed.cores.product.len(), descriptors_max),
        clients: scene.clients,
        object_bytes: scene.object_bytes,
        descriptors_max,
        balance: scene.balance,
        feature: scene.feature,
        layer: scene.layer,
        said: found.said.clone(),
        front: scene.front,
        certificate: scene.front.key.map(|key| certificates.of(key).clone()),
        crs,
    };
    if let Some(reason) = definition.unable(&service) {
        return Ok(Start::Unable(reason));
    }
    let directory = store.working(scene.name, found.name())?;
    let configuration = match definition.file {
        Some(file) => {
            let text = (definition.configuration)(&service);
            store.configuration(scene.name, found.name(), file, &text)?
        }
        None => directory.clone(),
    };
    let place =
        Place { program: &found.program, configuration: &configuration, directory: &directory };
    let log = directory.join("output.log");
    let prefix = [bed.product_prefix(), scene.under.to_vec()].concat();
    let launch = Launch {
        name: found.name(),
        prefix: &prefix,
        command: &(definition.command)(place, &service),
        directory: &directory,
        log: &log,
        death_signal: definition.death_signal,
    };
    let served = Server::start(&launch).and_then(|server| served(server, &service, bed));
    match served {
        Ok(server) => {
            let Service { listen, workers, .. } = service;
            let runner = Runner { found: found.clone(), server, listen, workers };
            Ok(Start::Serves(Box::new(runner)))
        }
        Err(reason) => {
            let reason = refusal(found, place).unwrap_or(reason);
            let kept = store.keep_log(scene.name, found.name(), &log)?;
            Ok(Start::Unable(format!("{reason}\n(whole log: {kept})")))
        }
    }
}

/// The rules of OWASP CRS, if the scene needs them.
fn rules_of(feature: Feature) -> Result<Option<Crs>, String> {
    match feature {
        Feature::Waf(_) => Crs::find().map(Some),
        _ => Ok(None),
    }
}

/// Waits until the product serves.
fn served(mut server: Server, service: &Service, bed: &Bed) -> Result<Server, String> {
    let ready = bed.as_client(|| match service.layer {
        Layer::Udp(_) => server.wait_until_answering(&service.listen),
        Layer::Http | Layer::Tcp | Layer::Packets => server.wait_until_listening(&service.listen),
    });
    ready.map_err(|error| error.to_string())?.map(|()| server)
}

/// Runs a product's own check on the configuration of a scene.
pub fn check(
    found: &InstalledProduct,
    scene: &str,
    store: &Store,
) -> Result<Result<String, String>, RunError> {
    let directory = store.working(scene, found.name())?;
    let (Some(check), Some(file)) = (found.definition.check, found.definition.file) else {
        return Ok(Err("it cannot check a configuration".into()));
    };
    let configuration = store.configuration_of(scene, found.name(), file);
    let place =
        Place { program: &found.program, configuration: &configuration, directory: &directory };
    Ok(output_of(&check(place), place.directory))
}

/// The product's own error about its configuration, which is clearer than the end of its log.
fn refusal(found: &InstalledProduct, place: Place<'_>) -> Option<String> {
    output_of(&found.definition.check?(place), place.directory).err()
}
