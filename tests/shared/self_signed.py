"""A server's TLS with a certificate that nobody vouches for."""

import ssl
import subprocess

_AUTHORITY = """
[ca]
default_ca = self
[self]
database = {folder}/issued
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = policy
x509_extensions = extensions
[policy]
commonName = supplied
[extensions]
subjectAltName = {name}
"""


def self_signed(folder, name="IP:127.0.0.1", *, expired=False):
    """The server's side of a connection; the certificate for `name` is made in `folder`."""
    # A context of an earlier test may trust that one's authority.
    getattr(ssl.create_default_context, "cache_clear", lambda: None)()
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    request = f"openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout {key} "
    if expired:
        (folder / "issued").touch()
        (folder / "serial").write_text("01")
        (folder / "settings").write_text(_AUTHORITY.format(folder=folder, name=name))
        _run(f"{request} -new -out {folder}/request")
        _run(
            f"openssl ca -batch -notext -selfsign -config {folder}/settings -keyfile {key} "
            f"-startdate 200101000000Z -enddate 210101000000Z -in {folder}/request "
            f"-out {certificate}"
        )
    else:
        _run(f"{request} -x509 -days 2 -addext subjectAltName={name} -out {certificate}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _run(command):
    subprocess.run(command.split(), check=True, capture_output=True)


MISTRUSTED = {
    "expired": ({"expired": True}, "certificate has expired"),
    "another host's": ({"name": "DNS:elsewhere.example"}, "IP address mismatch"),
}
"""Certificates of a trusted authority that must not be accepted, and what a message says."""
