"""A Django service for workers of greenlets: each request asks its database before and after."""

import os
from urllib.parse import parse_qs

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpResponse
from django.urls import path
from wsgi_app import chain


def _asked():
    """What the database holds; raises where an event loop seems to run in this thread."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()[0]


def answer(request):
    assert _asked() == 1
    question = parse_qs(request.META["QUERY_STRING"])["question"][0]
    words = list(chain.stream(question))
    assert _asked() == 1
    return HttpResponse("".join(words), content_type="text/plain")


settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    SECRET_KEY=os.urandom(16).hex(),
)
django.setup()
urlpatterns = [path("", answer)]
app = get_wsgi_application()
