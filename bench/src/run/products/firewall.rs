//! Web application firewalls: parts that weir and its peers share, and the peers that only firewall tests use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Definition, Feature, InstalledProduct, Service, WEIR, nginx, words};
use crate::catalogue::{CORAZA, NGINX_MODSECURITY};
use crate::run::crs::Crs;
use crate::run::process::{DeathSignal, find_program, output_of};

/// Settings for ModSecurity engines, read before the rules.
const ENGINE: &str = include_str!("../../../peers/waf/rules.conf");
const NGINX_TEMPLATE: &str = include_str!("../../../peers/waf/nginx.conf");
const CORAZA_TEMPLATE: &str = include_str!("../../../peers/waf/coraza.conf");

/// Debian's path of nginx's module.
const NGINX_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_modsecurity_module.so";
/// Folder of the module's library; subfolders are per architecture.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "libmodsecurity.so.3";

/// Source files of the Coraza proxy: name and text.
const CORAZA_SOURCES: [(&str, &str); 3] = [
    ("main.go", include_str!("../../../coraza/main.go")),
    ("go.mod", include_str!("../../../coraza/go.mod")),
    ("go.sum", include_str!("../../../coraza/go.sum")),
];
/// Build tag: CRS expects this regular expression mode.
const CORAZA_TAGS: &str = "coraza.rule.no_regex_multiline";

/// The requests that the virtual servers inspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectedRequests {
    /// Three virtual servers inspect different requests, in the order of [`Guard`].
    ByServer,
    /// Every virtual server inspects all requests.
    Everywhere,
}

/// A virtual server of [`InspectedRequests::ByServer`]; the value is its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Nothing is inspected.
    Off,
    /// All requests are inspected.
    All,
    /// Only the folder `/account/` is inspected.
    Third,
}

impl Guard {
    /// All guards, in order.
    pub const ALL: [Self; 3] = [Self::Off, Self::All, Self::Third];
}

impl InspectedRequests {
    /// The setting's name in templates.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ByServer => "SOME",
            Self::Everywhere => "EVERY",
        }
    }
}

/// Peers of the firewall tests.
pub const FIREWALLS: [&Definition; 2] = [&NGINX, &CORAZA_PROXY];

/// Whether a product takes part in a test of this feature.
pub fn takes_part(name: &str, feature: Feature) -> bool {
    let is_firewall = FIREWALLS.iter().any(|definition| definition.name == name);
    match feature {
        Feature::Waf(_) => is_firewall || name == WEIR,
        _ => !is_firewall,
    }
}

/// Finds a peer. The error has the reason why the peer cannot take part, and a fix.
pub fn find(definition: &'static Definition) -> Result<InstalledProduct, String> {
    let is_nginx = definition.name == NGINX_MODSECURITY;
    let mut found = if is_nginx { find_nginx(definition)? } else { find_coraza(definition)? };
    let version = &mut found.record.version;
    if let Some(library) = library_version(Path::new(LIBRARIES)).filter(|_| is_nginx) {
        *version = format!("{library} in nginx {version}");
    }
    if let Some(rules) = Crs::find().ok().and_then(|crs| crs.version()) {
        *version += &format!(" with OWASP CRS {rules}");
    }
    Ok(found)
}

fn find_nginx(definition: &'static Definition) -> Result<InstalledProduct, String> {
    if !Path::new(NGINX_MODULE).is_file() {
        let install = definition.install;
        return Err(format!("nginx's module is not at {NGINX_MODULE}: {install}"));
    }
    let missing = |reason| format!("{reason}: {}", definition.install);
    definition.find(Some(Path::new("nginx"))).map_err(missing)
}

/// Version of libmodsecurity, such as `3.0.9`, from the name of the file behind the symbolic link.
fn library_version(libraries: &Path) -> Option<String> {
    let folders = std::fs::read_dir(libraries).ok()?.flatten();
    let file = folders.map(|folder| folder.path().join(LIBRARY)).find(|file| file.exists())?;
    let target = file.canonicalize().ok()?;
    let name = target.file_name()?.to_str()?;
    Some(name.strip_prefix("libmodsecurity.so.")?.to_owned())
}

/// Builds the Coraza proxy. This program contains the sources, and Go caches earlier builds.
fn find_coraza(definition: &'static Definition) -> Result<InstalledProduct, String> {
    let install = definition.install;
    let go = find_program("go").ok_or_else(|| format!("go is not in PATH: {install}"))?;
    let folder = build_folder()?;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for (name, text) in CORAZA_SOURCES {
        std::fs::write(folder.join(name), text).map_err(failed)?;
    }
    let mut command = vec![go.into_os_string()];
    let arguments = ["build", "-trimpath", "-buildvcs=false", "-tags", CORAZA_TAGS];
    command.extend(arguments.iter().chain(&["-o", CORAZA, "."]).map(OsString::from));
    let told = |said| format!("it cannot be built: {said} ({install})");
    output_of(&command, &folder).map_err(told)?;
    definition.find(Some(&folder.join(CORAZA)))
}

/// The user's cache folder for builds.
fn build_folder() -> Result<PathBuf, String> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = of("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| of("HOME").map(|home| Path::new(&home).join(".cache")));
    let cache = cache.ok_or("it is built in the home folder, and HOME is not set")?;
    Ok(cache.join("weir-bench").join(CORAZA))
}

/// Template values common to all firewalls.
pub(super) fn filled_words(service: &Service) -> Vec<(&'static str, String)> {
    let address = |guard: Guard| {
        let address = service.listen.get(guard as usize);
        address.map(ToString::to_string).unwrap_or_default()
    };
    let crs = service.crs.as_ref();
    let includes = crs.map(|crs| crs.includes()).unwrap_or_default();
    vec![
        ("CRS", crs.map(|crs| crs.folder.display().to_string()).unwrap_or_default()),
        ("RULES", format!("{ENGINE}{includes}")),
        ("OFF", address(Guard::Off)),
        ("ALL", address(Guard::All)),
        ("THIRD", address(Guard::Third)),
    ]
}

fn nginx_configuration(service: &Service) -> String {
    let mut more = filled_words(service);
    more.extend(nginx::words_of(service, NGINX_MODULE.into()));
    service.fill(NGINX_TEMPLATE, service.workers, nginx::BALANCE, &more)
}

fn coraza_configuration(service: &Service) -> String {
    service.fill(CORAZA_TEMPLATE, service.workers, ["", ""], &filled_words(service))
}

/// These peers support only the tests of firewalls.
fn lacks(service: &Service) -> Option<String> {
    let is_asked = matches!(service.feature, Feature::Waf(_));
    (!is_asked).then(|| "it is used only by the tests of web application firewalls".into())
}

fn coraza_lacks(service: &Service) -> Option<String> {
    let is_crs_3 = service.crs.as_ref().is_some_and(Crs::asks_for_collections);
    let reason = "Coraza has no collections that outlast a request, which the rules of CRS 3 ask for: name a folder of \
                  CRS 4 by WEIR_CRS";
    lacks(service).or_else(|| is_crs_3.then(|| reason.into()))
}

const NGINX: Definition = Definition {
    name: NGINX_MODSECURITY,
    install: "apt-get install nginx libnginx-mod-http-modsecurity modsecurity-crs",
    configuration: nginx_configuration,
    lacks,
    ..nginx::DEFINITION
};

const CORAZA_PROXY: Definition = Definition {
    name: CORAZA,
    install: "it is built by Go 1.25 or newer, https://go.dev/dl, with apt-get install modsecurity-crs",
    version_arguments: &["--version"],
    // The output `coraza 3.8.1 (go1.26.8)`
    parse_version: |text| super::after(text, "coraza ", " ("),
    parse_tls: |text| super::after(text, " (", ")").map(|go| format!("crypto/tls of {go}")),
    parse_commit: |_| None,
    file: Some("coraza.conf"),
    configuration: coraza_configuration,
    command: |place, _| words(place.program, [place.configuration.as_os_str()]),
    check: Some(|place| {
        words(place.program, ["--check".as_ref(), place.configuration.as_os_str()])
    }),
    is_one_process: true,
    virtual_servers_max: usize::MAX,
    has_queue: false,
    lacks: coraza_lacks,
    death_signal: DeathSignal::Kill,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::products::tests::service;
    use crate::run::template;

    #[test]
    fn who_takes_part() {
        let check = |name, feature, expected| {
            assert_eq!(takes_part(name, feature), expected, "{name}, {feature:?}");
        };
        let waf = Feature::Waf(InspectedRequests::ByServer);
        for (name, in_others, in_waf) in [
            (WEIR, true, true),
            ("nginx", true, false),
            (NGINX_MODSECURITY, false, true),
            (CORAZA, false, true),
        ] {
            check(name, Feature::Plain, in_others);
            check(name, waf, in_waf);
        }
    }

    #[test]
    fn configurations_are_filled_and_differ_by_what_is_inspected() {
        for definition in FIREWALLS.into_iter().chain([&super::super::weir::DEFINITION]) {
            for (inspected, servers) in
                [(InspectedRequests::ByServer, 3), (InspectedRequests::Everywhere, 5)]
            {
                let feature = Feature::Waf(inspected);
                let service = Service { feature, ..service(servers, 2, 1) };
                let text = (definition.configuration)(&service);
                assert_eq!(template::unfilled(&text), None, "{}:\n{text}", definition.name);
                assert_eq!(text.matches("127.0.1.").count(), 2, "{text}");
                assert_eq!(text.matches("127.0.2.").count(), usize::from(servers), "{text}");
                assert_eq!(definition.unable(&service), None, "{}", definition.name);
            }
        }
        assert!(NGINX.unable(&service(1, 1, 1)).is_some());
    }

    #[test]
    fn products_accept_their_configurations() {
        let crs = match Crs::find() {
            Ok(crs) => crs,
            Err(reason) => return eprintln!("SKIPPED: {reason}"),
        };
        for definition in FIREWALLS {
            let found = match find(definition) {
                Ok(found) => found,
                Err(reason) => {
                    eprintln!("SKIPPED the check of {}: {reason}", definition.name);
                    continue;
                }
            };
            let folder = tempfile::tempdir().expect("a folder");
            let crs = Some(crs.clone());
            let feature = Feature::Waf(InspectedRequests::ByServer);
            let service = Service { feature, crs, ..service(3, 2, 1) };
            if let Some(reason) = definition.unable(&service) {
                eprintln!("SKIPPED the check of {}: {reason}", definition.name);
                continue;
            }
            let path = folder.path().join(definition.file.expect("it has one"));
            std::fs::write(&path, (definition.configuration)(&service)).expect("a file");
            let place = super::super::Place {
                program: &found.program,
                configuration: &path,
                directory: folder.path(),
            };
            let check = definition.check.expect("it checks");
            output_of(&check(place), folder.path()).expect(definition.name);
        }
    }
}
