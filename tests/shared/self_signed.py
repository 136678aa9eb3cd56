"""A server's TLS with a certificate that nobody vouches for."""

import ssl
import subprocess


def self_signed(folder, name="IP:127.0.0.1"):
    """The server's side of a connection; the certificate for `name` is made in `folder`."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        f"-addext subjectAltName={name} -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
